"""What a query measures and what that costs: sums on integer grids, noise, thresholds, bounds."""
