"""Noise for many queries at once: how large errors may be, and how epsilon is split over them."""
