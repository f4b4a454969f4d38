"""What all attacks share: knowledge, guesses about targets and controls, bounds from a privacy loss."""
