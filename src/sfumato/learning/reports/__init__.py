"""Honest reports on a trained model."""
