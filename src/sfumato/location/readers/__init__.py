"""Points from files and frames."""
