"""The black-box auditor on the bytes that are sent: never above epsilon, and nearly at it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.audit import audit
from sfumato.local import (
    Domain,
    HadamardResponse,
    OneBitHadamard,
    OptimalLocalHashing,
    OptimizedUnaryEncoding,
    ProjectiveGeometryResponse,
    RandomizedResponse,
    SubsetSelection,
    SymmetricUnaryEncoding,
)
from sfumato.local.baselines import BinaryLocalHashing, SummationHistogram, ThresholdHistogram
from sfumato.local.device import NoisyHistogramRandomizer
from sfumato.local.device.frequency.local_hashing import HashingRandomizer, hashed, keys_of
from tests.chance import accepts_only
from tests.local.laws import audited

KINDS: list[Any] = [
    RandomizedResponse,
    SymmetricUnaryEncoding,
    OptimizedUnaryEncoding,
    OptimalLocalHashing,
    BinaryLocalHashing,
    SubsetSelection,
    HadamardResponse,
    OneBitHadamard,
    ProjectiveGeometryResponse,
    SummationHistogram,
    ThresholdHistogram,
]
CERTAIN = 1 - 1e-11
"""Thirty-three audits give a false alarm with probability below 1e-9."""


def sent(oracle: Any, seed: int) -> Callable[[int, int], Any]:
    """What many devices send that hold one value."""
    generator = np.random.default_rng(seed)

    def reports(value: int, size: int) -> Any:
        records = oracle.randomize_batch(np.full(size, value), generator).records
        device = oracle.device
        if isinstance(device, NoisyHistogramRandomizer):
            # Nor one through numbers of two bytes: they are read as how much likelier each value makes them.
            numbers = np.clip(device.numbers(records)[:, :2], 0, device.steps)
            return np.hstack([numbers, numbers[:, :1] - numbers[:, 1:]])
        if not isinstance(device, HashingRandomizer):
            return records
        # No learner sees through a hash: the seed's bytes are read as what they say of the two values.
        seeds, buckets = device.opened(records)
        hashes = hashed(seeds[:, None], keys_of(np.arange(2))[None, :]).astype(np.uint64)
        alike = hashes * np.uint64(device.buckets) >> np.uint64(32) == buckets[:, None]
        return np.hstack([records[:, 4:], alike])

    return reports


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.__name__))
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_the_bytes_keep_epsilon_and_use_it(kind: Any, epsilon: float) -> None:
    oracle = kind(epsilon=epsilon, domain=Domain(range(3)))
    trials = {0.5: 2_000_000, 1.0: 600_000, 4.0: 200_000}[epsilon]
    found = audit(
        sent(oracle, 7), epsilon=epsilon, pairs=[(0, 1)], trials=trials, batch=True, confidence=CERTAIN
    )
    assert not found.violated
    accepts_only(audited(found), epsilon, nine_tenths=0.9 * epsilon)


def test_an_audit_sees_a_report_that_tells_too_much() -> None:
    oracle = OptimizedUnaryEncoding(epsilon=2.0, domain=Domain(range(3)))
    found = audit(sent(oracle, 7), epsilon=1.0, pairs=[(0, 1)], trials=20_000, batch=True, confidence=CERTAIN)
    assert found.violated
