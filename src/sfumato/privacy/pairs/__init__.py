"""Dominating pairs: two distributions that stand for a mechanism, and how they are cut into atoms of loss."""
