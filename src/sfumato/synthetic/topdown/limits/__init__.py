"""Constraints on several partitions of the cells together."""
