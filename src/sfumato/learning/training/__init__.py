"""Training with a guarantee: Opacus's names over the engine, a sampler, keyed noise and the ledger."""
