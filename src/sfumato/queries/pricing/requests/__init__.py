"""The measures that a query needs, one class each: bounds, grid, sensitivity, and bounds to be found."""
