"""Nodes: what was done around a mechanism, such as sampling its input or shuffling its outputs."""
