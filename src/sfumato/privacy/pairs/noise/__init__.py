"""Dominating pairs of additive noise: two distributions of one noise, one sensitivity apart."""
