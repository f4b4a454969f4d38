"""Checks of a module before it is trained: examples that see one another, the engine's sums, replacements."""
