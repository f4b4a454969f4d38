"""Statistics of whole columns: quantiles, means, regressions, intervals and tests, each with its own loss."""
