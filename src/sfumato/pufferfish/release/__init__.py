"""What a mechanism of this room hands out: a noisy value, its guarantee, and a budget of guarantees."""
