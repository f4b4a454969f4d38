"""Hypothesis tests on noisy statistics: binomial, chi-square, Kolmogorov-Smirnov, ranks, t-test, ANOVA.

Each p-value accounts for the noise that was added as well as for sampling.
"""
