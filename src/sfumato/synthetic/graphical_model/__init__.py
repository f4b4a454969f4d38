"""Maximum-entropy models of noisy marginals: junction tree, fit, marginals of any columns, rows."""
