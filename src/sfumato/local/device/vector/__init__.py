"""Client halves of the protocols for mean vectors, and random vectors that follow from a seed."""
