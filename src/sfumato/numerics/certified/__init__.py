"""Functions with proven error bounds: exponentials, logarithms and tails to any number of bits."""
