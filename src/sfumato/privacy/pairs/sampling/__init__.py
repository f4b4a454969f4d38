"""Dominating pairs of mechanisms on a random sample: Poisson, of fixed size, or allocated to steps."""
