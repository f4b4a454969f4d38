"""The planar Laplace mechanism on a lattice."""
