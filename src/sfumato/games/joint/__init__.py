"""Joint differential privacy: each agent's own part is theirs, and all the others together learn little of them."""
