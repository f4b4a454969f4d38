"""Noise of each aggregator: it covers how far a measurement moves the sums, and one share's suffices."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.federated import (
    AggregatorNoise,
    Prio3,
    Prio3Aggregator,
    UsedVerifyKeys,
    prio3_count,
    prio3_histogram,
    prio3_l1_bound_sum,
    prio3_multihot_count_vec,
    prio3_sum,
    prio3_sum_vec,
)
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.privacy import Neighboring
from tests.cases import cases

REPLACE = Neighboring.REPLACE_ONE


def vectors(length: int, top: int, most: int) -> Iterable[list[int]]:
    return [list(x) for x in itertools.product(range(top + 1), repeat=length) if sum(x) <= most]


@cases(
    "prio3, measurements",
    [
        (prio3_count(), [0, 1]),
        (prio3_sum(5), range(6)),
        (prio3_sum_vec(3, 2, 2), vectors(3, 2, 6)),
        (prio3_histogram(1, 1), [0]),
        (prio3_histogram(4, 2), range(4)),
        (prio3_multihot_count_vec(4, 1, 2), vectors(4, 1, 1)),
        (prio3_multihot_count_vec(3, 2, 2), vectors(3, 1, 2)),
        (prio3_l1_bound_sum(3, 4, 2), vectors(3, 4, 4)),
        (prio3_l1_bound_sum(1, 4, 2), vectors(1, 4, 4)),
        (prio3_l1_bound_sum(4, 1, 2), vectors(4, 1, 1)),
    ],
)
def test_the_shift_is_the_worst_of_all_pairs(prio3: Prio3, measurements: Iterable[Any]) -> None:
    encoded = prio3.circuit.encode(list(measurements))
    outputs = prio3.circuit.truncate(encoded)[..., 0].astype(np.int64)
    moves = np.abs(outputs[:, None] - outputs[None]).reshape(-1, outputs.shape[1])
    worst = [int(each.max()) for each in ((moves > 0).sum(1), moves.sum(1), (moves**2).sum(1), moves.max(1))]
    shift = prio3.circuit.shift
    told = [shift.l0, shift.l1, shift.l2_squared, shift.linf]
    assert told == ([1, 1, 1, 1] if worst == [0, 0, 0, 0] else worst)
    most = [int(each.max()) for each in ((outputs > 0).sum(1), outputs.sum(1), (outputs**2).sum(1))]
    extent = prio3.circuit.extent
    assert [extent.l0, extent.l1, extent.l2_squared, extent.linf] == [*most, int(outputs.max())]


@cases("epsilon, delta", [(1.0, 0.0), (1.0, 1e-6), (0.1, 1e-9)])
@cases(
    "prio3",
    [prio3_histogram(50, 7), prio3_sum_vec(20, 3, 8), prio3_l1_bound_sum(9, 4, 3), prio3_count(shares=3)],
)
def test_calibrated_noise_meets_its_target_and_is_the_smaller(
    prio3: Prio3, epsilon: float, delta: float
) -> None:
    noise = AggregatorNoise.calibrated(prio3, epsilon=epsilon, delta=delta)
    assert noise.privacy_loss.epsilon(delta) <= epsilon
    assert noise.mechanism.neighboring is REPLACE
    pure = AggregatorNoise.calibrated(prio3, epsilon=epsilon)
    assert isinstance(pure.mechanism, Laplace)
    # A norm over all entries only where it is less than as many entries' bounds.
    shift = prio3.circuit.shift
    assert (pure.mechanism.l1 is None) is (shift.l0 * shift.linf == shift.l1)
    if isinstance(noise.mechanism, Gaussian):
        assert (noise.mechanism.l2 is None) is (shift.l0 * shift.linf**2 == shift.l2_squared)
    assert pure.mechanism.scale == pytest.approx(prio3.circuit.shift.l1 / epsilon, rel=1e-6)
    assert noise.mechanism.stddev <= pure.mechanism.stddev
    if prio3.circuit.output_length == 20:
        assert isinstance(noise.mechanism, Gaussian if delta else Laplace)


def exact_margin(noise: AggregatorNoise, level: float) -> int:
    """The smallest half-width of the whole noise, by convolution of exact probabilities."""
    reach = 16 * int(noise.mechanism.stddev + 2)
    half = [noise.mechanism.distribution.pmf(k).upper for k in range(reach + 1)]
    one = np.array([*half[:0:-1], *half])
    whole = one
    for _ in range(noise.shares - 1):
        whole = np.convolve(whole, one)
    middle = len(whole) // 2
    inside = np.cumsum(np.concatenate([whole[middle : middle + 1], 2 * whole[middle + 1 :]]))
    return int(np.flatnonzero(inside >= level)[0])


@cases("shares", [2, 3])
@cases(
    "mechanism",
    [
        Laplace(sensitivity=1, scale=1, neighboring=REPLACE),
        Laplace(sensitivity=1, scale=33, neighboring=REPLACE),
        Gaussian(sensitivity=1, stddev=33.5, neighboring=REPLACE),
    ],
)
def test_margins_hold_and_are_tight(mechanism: Laplace | Gaussian, shares: int) -> None:
    noise = AggregatorNoise(mechanism=mechanism, shift=Shift.entries(1, 1), shares=shares)
    for level in (0.5, 0.95, 1 - 1e-6):
        exact = exact_margin(noise, level)
        assert exact <= noise.margin(level) <= 1.07 * exact + shares
    assert noise.margin(1 - 2.0**-52) > noise.margin(1 - 1e-6)
    assert noise.stddev == pytest.approx(mechanism.stddev * shares**0.5)


def test_every_aggregator_adds_noise_of_its_own() -> None:
    prio3 = prio3_histogram(3, 2)
    noise = AggregatorNoise.calibrated(prio3, epsilon=0.01)
    key = os.urandom(32)
    sides = [Prio3Aggregator(prio3, key, j, UsedVerifyKeys(), noise=noise) for j in range(2)]
    plain = [Prio3Aggregator(prio3, bytes(32), j, UsedVerifyKeys()) for j in range(2)]
    reports = prio3.shard([0, 2, 2])
    for pair in (sides, plain):
        shares = [
            side.begin(reports.nonces, reports.public_shares, reports.input_shares[j])
            for j, side in enumerate(pair)
        ]
        messages, passed = prio3.verifier_shares_to_message(shares)
        agreed = np.logical_and.reduce([side.decide(messages, passed) for side in pair])
        for side in pair:
            side.count(agreed)
    noisy = [side.aggregate_share(rng=j) for j, side in enumerate(sides)]
    exact = [side.aggregate_share() for side in plain]
    for j in range(2):  # the noise of either one is in the sum, in full
        mixed = [noisy[j], exact[1 - j]] if j == 0 else [exact[0], noisy[1]]
        drawn = noise.draw(3, rng=j)
        assert any(drawn)
        assert prio3.unshard(mixed, signed=True) == [a + b for a, b in zip([1, 0, 2], drawn, strict=True)]
    # A new sum gets new noise, also where nothing was counted.
    assert prio3.unshard([side.aggregate_share(rng=5) for side in sides], signed=True) == [
        2 * x for x in noise.draw(3, rng=5)
    ]


def test_noise_without_a_seed_differs() -> None:
    noise = AggregatorNoise.calibrated(prio3_count(), epsilon=1e-6)
    assert noise.draw(8) != noise.draw(8)  # alike with a probability below 1e-40


COUNT = Laplace(sensitivity=1, scale=3, neighboring=REPLACE)


@cases(
    "call, message",
    [
        (lambda: AggregatorNoise(mechanism=COUNT, shift=Shift.entries(2, 1)), "cover"),
        (lambda: AggregatorNoise(mechanism=COUNT, shift=Shift.entries(1, 1), shares=1), "shares"),
        (
            lambda: AggregatorNoise(mechanism=Laplace(sensitivity=1, scale=3), shift=Shift.entries(1, 1)),
            "replace-one",
        ),
        (lambda: AggregatorNoise(mechanism=1, shift=Shift.entries(1, 1)), "Laplace or Gaussian"),  # type: ignore[arg-type]
        (
            lambda: AggregatorNoise(
                mechanism=Laplace(sensitivity=1.0, scale=3, neighboring=REPLACE), shift=Shift.entries(1, 1)
            ),
            "whole numbers",
        ),
        (lambda: AggregatorNoise(mechanism=COUNT, shift=1), "shift"),  # type: ignore[arg-type]
        (lambda: AggregatorNoise.calibrated(1, epsilon=1.0), "prio3"),  # type: ignore[arg-type]
        (
            lambda: AggregatorNoise.calibrated(prio3_count(), epsilon=1.0).added(prio3_sum(5), bytes(8)),
            "cover",
        ),
        (
            lambda: AggregatorNoise.calibrated(prio3_count(), epsilon=1.0).added(
                prio3_count(shares=3), bytes(8)
            ),
            "3",
        ),
        (
            lambda: Prio3Aggregator(
                prio3_sum(5),
                bytes(32),
                0,
                UsedVerifyKeys(),
                noise=AggregatorNoise.calibrated(prio3_count(), epsilon=1.0),
            ),
            "cover",
        ),
        (lambda: AggregatorNoise.calibrated(prio3_count(), epsilon=1.0).margin(1.0), "level"),
    ],
)
def test_refusals(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()
