"""From the arguments of `make_private` to a run: checked, charged, and only then attached.

`arguments` and `batches` give clipping, noise and sampler; `assembly` puts the run together;
`deferred_self_test` tests the module at its first forward.
"""
