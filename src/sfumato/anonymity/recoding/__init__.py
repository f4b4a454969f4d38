"""Recoding by class: Mondrian, local recoding and the attack on its choices."""
