"""Risk of re-identification: uniqueness, three attackers, and models of the population."""
