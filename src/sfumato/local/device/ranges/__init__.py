"""Client halves of the protocols for ranges and quantiles: one level of a tree is reported."""
