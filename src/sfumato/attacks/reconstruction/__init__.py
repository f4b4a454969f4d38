"""Reconstruction: the secret bits of all people, from noisy answers to linear queries."""
