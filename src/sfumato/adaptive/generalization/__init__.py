"""How far from the population answers can be that were chosen adaptively from a sample."""
