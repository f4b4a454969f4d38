"""What holds in the order or the combinations of values: ranges, quantiles, marginals."""
