"""Inference for the population from released noisy statistics; post-processing, free of charge."""
