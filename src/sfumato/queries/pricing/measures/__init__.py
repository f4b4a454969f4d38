"""What queries measure, one class each: its value of a unit, bounds, grid, sensitivity, noise and words."""
