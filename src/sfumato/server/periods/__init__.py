"""When a collection takes reports, and which of its keys are in use when."""
