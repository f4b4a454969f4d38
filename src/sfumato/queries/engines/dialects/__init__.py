"""The SQL of each engine."""
