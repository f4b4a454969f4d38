"""Noise mechanisms: Laplace, Gaussian, staircase, truncated and bounded Laplace, and randomized response."""
