"""What a device spends over all collections: caps of each day and of its lifetime."""
