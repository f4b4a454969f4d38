"""Comparison: a guarantee among the public records of deployments that protect the same unit."""
