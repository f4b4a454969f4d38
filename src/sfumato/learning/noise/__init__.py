"""Noise for sums of clipped gradients: keyed, counted by step and parameter."""
