"""The sparse vector technique: which queries are above a threshold, with Laplace or Gaussian noise."""
