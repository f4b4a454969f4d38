"""Private statistics of columns: means, variances, quantiles, regressions and hypothesis tests."""
