"""Errors, memory and time of each way to release tables, before anything is spent."""
