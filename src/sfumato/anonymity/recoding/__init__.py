"""Recoded tables: what is released, Mondrian, local recoding and the attack on its choices."""
