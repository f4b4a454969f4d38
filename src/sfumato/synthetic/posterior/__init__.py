"""Inference that regards the noise: draws of parameters, a synthetic table of each, and their rule."""
