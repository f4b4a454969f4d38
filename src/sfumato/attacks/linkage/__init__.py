"""Linkage: which record of a released table is a person's, whom other records describe."""
