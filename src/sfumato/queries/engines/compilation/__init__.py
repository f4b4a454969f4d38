"""The plan as SQL of a dialect, with each unit's contribution bounded, for every engine."""
