"""What a run stores to go on: its checkpoint, its sealed secrets, and its reservation on a ledger."""
