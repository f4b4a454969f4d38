"""Several attributes of each person: their marginals, correlations and tests of independence."""
