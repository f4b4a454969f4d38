"""Attacks on tables that are anonymous by a syntactic notion: k-anonymous, l-diverse, released twice."""
