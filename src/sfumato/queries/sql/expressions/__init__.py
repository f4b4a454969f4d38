"""Scalar expressions over one row: operators, functions and casts, each checked and typed."""
