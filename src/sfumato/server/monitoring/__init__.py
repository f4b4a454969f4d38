"""What an operator sees of a service: counters, metrics and the log."""
