"""Runs of several processes: ranks that share sums and step numbers, and parameters in shards."""
