"""Curves of games as numbers and pictures: revenue, regret and equilibrium gap."""
