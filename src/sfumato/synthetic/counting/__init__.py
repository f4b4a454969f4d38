"""Counts by cell that an engine computes: cells as SQL expressions, the job, and what comes back."""
