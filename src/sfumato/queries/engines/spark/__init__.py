"""Spark, where a cluster computes: source, dialect, engine and fingerprint."""
