"""Private selection: the best of some candidates, the top k, unknown domains, and private candidates."""
