"""The Wasserstein distance of a query's distributions under two secrets, and mechanisms that cover it."""
