"""Attacks on syntactic anonymity: what k-anonymous, l-diverse and t-close tables give away."""
