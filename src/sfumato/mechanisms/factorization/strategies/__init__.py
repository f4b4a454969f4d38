"""Strategies: which linear combinations are measured with noise, so that answers have the smallest error.

Those for streams are lower triangular (square root, banded, buffered, binary tree); each has an exact form
in whole numbers. Those for a workload are optimized for total squared error.
"""
