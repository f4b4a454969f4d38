"""Domains of reported values: categories, bins of numbers, pairs, strings, and trees over ordered values."""
