"""Ranges, distributions and quantiles of ordered values, and rectangles of pairs."""
