"""Regression models in which a variable is known only through randomized answers."""
