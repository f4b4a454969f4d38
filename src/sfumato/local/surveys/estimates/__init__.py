"""What randomized answers say: prevalence, shares of categories, intervals, weights and risks."""
