"""Measures of a table, each in its paper's definition: k-anonymity, l-diversity, t-closeness and others."""
