"""Dominating pairs: two distributions that stand for a mechanism, and their discretisation."""
