"""Federated training in simulation: clients train, a server sees noisy sums of what they changed."""
