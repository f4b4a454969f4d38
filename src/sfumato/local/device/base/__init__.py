"""What all client halves share: randomizers, their specifications, report batches, records, exact coins."""
