"""The black-box auditor on the bytes of sequences: never above what a memo costs, and above one report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.audit import audit
from sfumato.local import (
    Domain,
    LongitudinalLocalHashing,
    LongitudinalRandomizedResponse,
    LongitudinalUnaryEncoding,
    MemoizedBitFlip,
    MemoizedOneBitMean,
)
from sfumato.local.device.frequency.local_hashing import bucket_of
from tests.chance import accepts_only
from tests.local.laws import audited

CERTAIN = 1 - 1e-11
"""Some twenty audits give a false alarm with probability below 1e-9."""
TRIALS = {0.5: 1_200_000, 1.0: 300_000, 4.0: 200_000}
LAYERED: list[Any] = [
    LongitudinalRandomizedResponse,
    LongitudinalUnaryEncoding,
    LongitudinalLocalHashing,
]


def made(kind: Any, epsilon: float, **shape: Any) -> Any:
    if kind is MemoizedOneBitMean:
        return kind(epsilon=epsilon, bounds=(0.0, 1.0), **shape)
    return kind(epsilon=epsilon, domain=Domain(range(3)), **shape)


def sent(protocol: Any, rounds: int, seed: int) -> Callable[[int, int], Any]:
    """All that many devices send in some rounds, in which they hold one value, side by side."""
    generator = np.random.default_rng(seed)

    def reports(value: int, size: int) -> Any:
        batches = protocol.randomize_rounds([np.full(size, value)] * rounds, generator)
        if not isinstance(protocol, LongitudinalLocalHashing):
            return np.hstack([batch.records for batch in batches])
        # No learner sees through a hash: the seed's bytes are read as what they say of the two values.
        seeds, _ = protocol.device.opened(batches[0].records)
        told = []
        for code in (0, 1):
            places = bucket_of(seeds, np.full(size, code), protocol.device.max_keys)
            told += [protocol.device.opened(batch.records)[1] == places for batch in batches]
        return np.stack(told, axis=1).astype(np.uint8)

    return reports


def audit_of(protocol: Any, rounds: int, epsilon: float, trials: int) -> Any:
    return audit(
        sent(protocol, rounds, 7),
        epsilon=epsilon,
        pairs=[(0, 1)],
        trials=trials,
        batch=True,
        confidence=CERTAIN,
    )


@pytest.mark.parametrize(
    "kind", [*LAYERED, MemoizedBitFlip, MemoizedOneBitMean], ids=lambda kind: kind.__name__
)
@pytest.mark.parametrize("epsilon", TRIALS)
def test_the_bytes_of_one_report_keep_epsilon_and_use_it(kind: Any, epsilon: float) -> None:
    found = audit_of(made(kind, epsilon), 1, epsilon, TRIALS[epsilon])
    assert not found.violated
    accepts_only(audited(found), epsilon, nine_tenths=0.9 * epsilon)


@pytest.mark.parametrize(
    "kind", [*LAYERED, MemoizedBitFlip, MemoizedOneBitMean], ids=lambda kind: kind.__name__
)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_the_bytes_of_many_reports_keep_the_permanent_epsilon_and_pass_that_of_one(
    kind: Any, epsilon: float
) -> None:
    # The permanent epsilon is the one in question; three reports of a memo tell nearly all of it.
    protocol = made(kind, 0.75 * epsilon, permanent_epsilon=epsilon)
    found = audit_of(protocol, 3, epsilon, TRIALS[epsilon])
    assert not found.violated
    exact = protocol.same_memo_loss(3).epsilon(0.0)
    assert exact <= epsilon
    accepts_only(audited(found), exact, nearly_all=0.85 * epsilon, of_one_report=protocol.epsilon)


@pytest.mark.parametrize("kind", LAYERED, ids=lambda kind: kind.__name__)
def test_an_audit_sees_reports_that_are_drawn_anew(kind: Any) -> None:
    # Without memos six reports tell far more than the permanent epsilon.
    protocol = made(kind, 1.0, permanent_epsilon=1.5)
    generator = np.random.default_rng(1)

    def anew(value: int, size: int) -> Any:
        parts = [sent(protocol, 1, int(generator.integers(1 << 30)))(value, size) for _ in range(6)]
        return np.hstack(parts)

    found = audit(anew, epsilon=1.5, pairs=[(0, 1)], trials=6_000, batch=True, confidence=CERTAIN)
    assert found.violated
