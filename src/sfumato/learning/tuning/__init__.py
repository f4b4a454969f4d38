"""Private tuning: of a secret number of private runs with random settings, only the best is released."""
