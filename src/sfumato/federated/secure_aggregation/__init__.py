"""Secure aggregation: Bonawitz et al. (2017), on the random k-regular graph of Bell et al. (2020)."""
