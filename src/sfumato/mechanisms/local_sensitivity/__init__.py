"""Answers whose noise follows the data at hand instead of the worst data: each with its theorem."""
