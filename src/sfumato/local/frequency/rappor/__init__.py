"""RAPPOR's server half: counts of bits, what they say of candidate strings, and of two variables together."""
