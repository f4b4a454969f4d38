"""Opacus's loader of Poisson batches; here `PrivacyEngine.make_private` returns one, with the run's seed."""

from __future__ import annotations

from sfumato.learning.opacus.elsewhere import elsewhere

__all__: list[str] = []

__getattr__ = elsewhere(
    __name__,
    "come from make_private",
    "one that is made by itself belongs to no run, which would not know what was drawn",
    {
        "DPDataLoader": "pass your own DataLoader to make_private, and use the one it returns; batches alone "
        "are PoissonSampler(...).batch(step)"
    },
)
