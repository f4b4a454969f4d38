"""Noise that clients share: each adds a part of it, and only the sum, which has all of it, is seen."""
