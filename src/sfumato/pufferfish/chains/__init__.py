"""Markov chains and classes of them: how the records of one sequence may depend on one another."""
