"""PATE: teachers on disjoint parts of private data vote on public examples, and a student learns."""
