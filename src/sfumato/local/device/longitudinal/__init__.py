"""Client halves for a repeated question: a permanent randomization, and a fresh one for each report."""
