"""What one example may move: norms of per-example gradients, cut to a bound."""
