"""Private choices: the best of candidates, the best few, of unknown ones, or of private ones."""
