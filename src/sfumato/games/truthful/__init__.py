"""Exactly truthful mechanisms: a private choice mixed with a lottery that imposes what reports ask for."""
