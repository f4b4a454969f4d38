"""What one report moves at a level, by enumeration, and that the noise covers it at its target."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.federated import (
    AggregatorNoise,
    Mastic,
    MasticNoise,
    mastic_count,
    mastic_histogram,
    mastic_multihot_count_vec,
    mastic_sum,
    mastic_sum_vec,
)
from sfumato.federated.vdaf.mastic.mastic_noise import weight_shift
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.privacy import Neighboring
from tests.cases import cases

REPLACE = Neighboring.REPLACE_ONE


def vectors(length: int, top: int, most: int) -> list[list[int]]:
    return [list(x) for x in itertools.product(range(top + 1), repeat=length) if sum(x) <= most]


@cases(
    "mastic, weights",
    [
        (mastic_count(2), [0, 1]),
        (mastic_sum(2, 5), list(range(6))),
        (mastic_sum_vec(2, 2, 2, 2), vectors(2, 2, 4)),
        (mastic_histogram(2, 3, 2), [0, 1, 2]),
        (mastic_multihot_count_vec(2, 3, 2, 2), vectors(3, 1, 2)),
    ],
)
def test_the_shift_is_the_worst_of_all_pairs_of_prefixes_and_weights(
    mastic: Mastic, weights: list[Any]
) -> None:
    outputs = mastic.circuit.truncate(mastic.circuit.encode(weights))[..., 0].astype(np.int64)
    length = outputs.shape[1]
    rows = [np.zeros(2 * length, np.int64)]  # a string below neither prefix
    for prefix in range(2):
        for output in outputs:
            row = np.zeros(2 * length, np.int64)
            row[prefix * length : (prefix + 1) * length] = output
            rows.append(row)
    worst = [0, 0, 0, 0]
    for first, second in itertools.product(rows, repeat=2):
        move = np.abs(first - second)
        now = [(move > 0).sum(), move.sum(), (move**2).sum(), move.max()]
        worst = [max(a, int(b)) for a, b in zip(worst, now, strict=True)]
    shift = weight_shift(mastic.circuit)
    assert [shift.l0, shift.l1, shift.l2_squared, shift.linf] == worst


@cases("counts", [False, True])
@cases("epsilon, delta, levels", [(1.0, 0.0, 1), (1.0, 1e-6, 1), (0.5, 1e-9, 8)])
def test_calibrated_noise_meets_its_target(counts: bool, epsilon: float, delta: float, levels: int) -> None:
    mastic = mastic_sum(8, 10)
    noise = MasticNoise.calibrated(mastic, epsilon=epsilon, delta=delta, counts=counts, levels=levels)
    whole = noise.privacy_loss * levels
    assert 0.99 * epsilon < whole.epsilon(delta) <= epsilon
    assert whole.neighboring is REPLACE
    assert (noise.counts is not None) is counts
    assert isinstance(noise.weights.mechanism, Gaussian if delta else Laplace)
    if noise.counts is not None:
        # The same multiple of what one report moves: half of the loss each.
        ratio = noise.weights.mechanism.stddev / noise.counts.mechanism.stddev
        assert ratio == pytest.approx(10, rel=0.01)
        parts = [each.privacy_loss.epsilon(delta) for each in (noise.weights, noise.counts)]
        assert parts[0] == pytest.approx(parts[1], rel=0.02)


COUNTS = AggregatorNoise(
    mechanism=Laplace(sensitivity=1, scale=3, l0=2, neighboring=REPLACE), shift=Shift.entries(2, 1)
)
ONE = AggregatorNoise(mechanism=COUNTS.mechanism, shift=Shift.entries(1, 1))
THREE = AggregatorNoise(mechanism=COUNTS.mechanism, shift=Shift.entries(2, 1), shares=3)


@cases(
    "call, message",
    [
        (lambda: MasticNoise(weights=1), "weights"),  # type: ignore[arg-type]
        (lambda: MasticNoise(weights=COUNTS, counts=1), "counts"),  # type: ignore[arg-type]
        (lambda: MasticNoise(weights=COUNTS, counts=ONE), "cover"),
        (lambda: MasticNoise(weights=THREE), "2 aggregators"),
        (lambda: MasticNoise(weights=COUNTS, counts=THREE), "2 aggregators"),
        (lambda: MasticNoise(weights=COUNTS).check_covers(mastic_sum(2, 2)), "cover"),
        (lambda: MasticNoise.calibrated(mastic_count(2), epsilon=0.0), "epsilon"),
        (lambda: MasticNoise.calibrated(mastic_count(2), epsilon=1.0, levels=0), "levels"),
        (lambda: MasticNoise.calibrated(mastic_count(2), epsilon=1.0, counts=1), "counts"),  # type: ignore[arg-type]
        (lambda: MasticNoise.calibrated(1, epsilon=1.0), "mastic"),  # type: ignore[arg-type]
    ],
)
def test_refusals(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()
