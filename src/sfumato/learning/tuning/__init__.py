"""Tuning that is paid for: of a secret number of private runs with random settings, only the best is told."""
