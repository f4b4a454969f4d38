"""Opacus's optimizers; here the user's own steps, and `PrivacyEngine.make_private` returns it."""

from __future__ import annotations

from sfumato.learning.opacus.elsewhere import elsewhere

__all__: list[str] = []

_OWN = "pass your own optimizer to make_private{}, and use the one it returns"

__getattr__ = elsewhere(
    __name__,
    "come from make_private",
    "one that is made by itself belongs to no run, and nothing counts its steps",
    {
        "DPOptimizer": _OWN.format(""),
        "DPPerLayerOptimizer": _OWN.format(" with clipping='per_layer'"),
        "DistributedDPOptimizer": _OWN.format(" with a module in DPDDP"),
        "AdaClipDPOptimizer": _OWN.format(" with clipping=AdaptiveQuantile(clip_norm=1.0, count_stddev=5.0)"),
    },
)
