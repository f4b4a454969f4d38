"""The black-box auditor on the bytes of numbers: never above epsilon, and nearly at it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.audit import audit
from sfumato.local import (
    HybridMean,
    LaplaceMean,
    OneBitMean,
    PiecewiseMean,
    SquareWave,
    StochasticRoundingMean,
)
from tests.chance import accepts_only
from tests.local.laws import audited

KINDS: list[Any] = [LaplaceMean, OneBitMean, PiecewiseMean, HybridMean, StochasticRoundingMean, SquareWave]
CERTAIN = 1 - 1e-11
"""Eighteen audits give a false alarm with probability below 1e-9."""


def sent(protocol: Any) -> Callable[[float, int], Any]:
    generator = np.random.default_rng(7)
    return lambda value, size: protocol.randomize_batch(np.full(size, value), generator).records


@pytest.mark.sharpest("4.0-StochasticRoundingMean")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [4.0, 1.0])
def test_the_bytes_keep_epsilon_and_use_it(kind: Any, epsilon: float) -> None:
    more = {} if kind is OneBitMean else {"steps": 2}
    protocol = kind(epsilon=epsilon, bounds=(0, 1), **more)
    trials = {1.0: 600_000, 4.0: 200_000}[epsilon]
    found = audit(
        sent(protocol), epsilon=epsilon, pairs=[(0.0, 1.0)], trials=trials, batch=True, confidence=CERTAIN
    )
    assert not found.violated
    accepts_only(audited(found), epsilon, nine_tenths=0.9 * epsilon)


def test_an_audit_sees_a_report_that_tells_too_much() -> None:
    found = audit(
        sent(PiecewiseMean(epsilon=2.0, bounds=(0, 1), steps=2)),
        epsilon=1.0,
        pairs=[(0.0, 1.0)],
        trials=20_000,
        batch=True,
        confidence=CERTAIN,
    )
    assert found.violated
