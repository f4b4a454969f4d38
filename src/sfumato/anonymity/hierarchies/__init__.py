"""Generalisation hierarchies: from files, intervals, dates, prefixes, or suppression alone."""
