"""Tails of noise: of one distribution, of many draws of it, and of weighted sums, rounded outward."""
