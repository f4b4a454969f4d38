"""Heavy hitters: frequent strings, found without a list of candidates."""
