"""Hypothesis tests that are chosen by the results of earlier ones on the same rows."""
