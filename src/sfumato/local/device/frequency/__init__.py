"""Client halves of the frequency oracles, one family a file."""
