"""Holdout sets that can be asked again and again."""
