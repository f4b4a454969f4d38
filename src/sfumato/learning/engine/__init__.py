"""Sums of clipped per-example gradients, in one backward pass wherever a rule is known."""
