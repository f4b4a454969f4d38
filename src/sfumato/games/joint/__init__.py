"""Joint differential privacy: what an agent receives is its own; all others learn little of it."""
