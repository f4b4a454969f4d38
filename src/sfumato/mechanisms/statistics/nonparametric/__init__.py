"""Distributions without a parametric model: survival curves, contingency tables, histograms and densities."""
