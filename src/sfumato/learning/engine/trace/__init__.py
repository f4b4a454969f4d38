"""What a module's forward does with each parameter, found from small batches before any example is used.

`probe` runs two small batches, `plan` compares them: each call that a parameter meets, and where the examples
lie in its tensors (`batch_layout`). Fused calls are opened into smaller ones (`decompositions`, `recurrent`),
random ones are made still for the comparison (`without_randomness`), and activation checkpoints are opened
(`activation_checkpointing`).
"""
