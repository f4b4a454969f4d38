"""Neighboring relations in which several records change: groups, households, networks."""
