"""Maps of where many devices are, from their reports."""
