"""Marginals: how often the categories of several attributes come together, told locally."""
