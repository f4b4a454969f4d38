"""Hypothesis tests on randomized answers, and the sample sizes that they need."""
