"""Full-domain generalisation: equivalence classes, losses and the search of the lattice."""
