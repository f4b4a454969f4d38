"""Records of deployments for the public registry of differential privacy."""
