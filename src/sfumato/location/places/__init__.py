"""Mechanisms on finitely many places."""
