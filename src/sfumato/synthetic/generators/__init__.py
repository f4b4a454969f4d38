"""Mechanisms that release a model of a table, and the released model."""
