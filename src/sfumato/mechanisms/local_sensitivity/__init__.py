"""Noise scaled to local sensitivity: smooth sensitivity, propose-test-release, sample-and-aggregate."""
