"""Tracing: whether a person is among those whose attributes were summed, and codes that make it certain."""
