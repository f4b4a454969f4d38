"""Ranges and quantiles of ordered values, told through trees."""
