"""The distributions of noise: densities, tails and quantiles as certified intervals, and their samplers.

`discrete` holds the discrete Laplace and Gaussian distributions, `staircase` and `truncated_laplace` the
others.
"""
