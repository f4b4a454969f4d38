"""Many collections in one process: their settings, their one front, and what a reload changes."""
