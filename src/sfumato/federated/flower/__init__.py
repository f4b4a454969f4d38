"""Flower's client and server apps with this project's secure aggregation; only their calls need Flower."""
