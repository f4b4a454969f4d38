"""Calls of aggregates: their arguments, and the contribution bounds that they state."""
