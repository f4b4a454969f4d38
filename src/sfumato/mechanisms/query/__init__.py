"""Queries that know their own sensitivity: counts, histograms, sums, means, linear workloads.

Also a search for neighboring datasets that refute a claimed sensitivity, and bounds on contributions.
"""
