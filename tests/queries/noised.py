"""The mechanisms of a priced query that add noise: what is chosen has no standard deviation."""

from __future__ import annotations

from sfumato.mechanisms.statistics.quantile.binned_quantiles import BinMechanism
from sfumato.queries.pricing.calibration import AnyMechanism, NoiseMechanism

__all__ = ["noised"]


def noised(mechanism: AnyMechanism) -> NoiseMechanism:
    assert not isinstance(mechanism, BinMechanism)
    return mechanism
