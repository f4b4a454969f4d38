"""Sketches and dBitFlip on the server: moments of whole reports, merges, hostile bytes, Apple's defaults."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local import BitFlip, CountMeanSketch, Domain, HadamardCountMeanSketch
from sfumato.privacy.nodes.shuffled import Shuffled
from tests.chance import accepts_only
from tests.local.laws import SEVEN_SIGMA, have_moments, within

SKETCHES: list[Any] = [CountMeanSketch, HadamardCountMeanSketch]
COUNTS = np.array([700, 200, 0, 60, 0, 40, 0])


def test_apples_parameters_are_the_defaults() -> None:
    oracle = CountMeanSketch(epsilon=4.0, domain=Domain(range(2600)))
    assert (oracle.size, oracle.hashes) == (1024, 65_536)
    assert float(oracle.device.bits.other.chance) == pytest.approx(1 / (1 + np.exp(2.0)), rel=1e-3)
    sign = HadamardCountMeanSketch(epsilon=4.0, domain=Domain(range(2600))).device.truth.chance
    assert float(1 - sign) == pytest.approx(1 / (1 + np.exp(4.0)), rel=1e-12)
    flip = float(oracle.device.bits.other.chance)
    assert oracle.variance(1) == pytest.approx(flip * (1 - flip) / (1 - 2 * flip) ** 2 + 1 / 1023, rel=3e-3)


@pytest.mark.parametrize("kind", SKETCHES)
def test_whole_reports_over_many_families_have_the_stated_moments(kind: Any) -> None:
    # Small sketches, so that collisions are most of the error: a family of hash functions for each repeat.
    repeats, shares = 400, COUNTS / COUNTS.sum()
    values = np.repeat(np.arange(7), COUNTS * 2)
    drawn = []
    for key in range(repeats):
        oracle = kind(epsilon=6.0, domain=Domain(range(7)), size=8, hashes=4096, key=key)
        aggregator = oracle.aggregator()
        aggregator.add_batch(oracle.randomize_batch(values, key))
        drawn.append(aggregator.estimate().raw)
    error = np.array(drawn) - shares
    n = len(values)
    # A family's own part, which the notes of `SketchOracle` have beside the stated one.
    family = (np.sum(shares**2) - shares**2) * n / 4096 / 7
    stated = (oracle.error_model.variance(shares) + family) / n
    square = float((error**2).mean(axis=0).sum())

    def check(variances: Any) -> None:
        assert (abs(error.mean(axis=0)) <= SEVEN_SIGMA * np.sqrt(variances / repeats)).all()
        # Of 400 repeats in 7 categories, correlated by 1/m: known to 3 %, and 6.2 deviations of it.
        assert abs(square / variances.sum() - 1) <= 0.03 * SEVEN_SIGMA

    accepts_only(check, stated, a_quarter_less=0.75 * stated, a_third_more=4 / 3 * stated)
    assert float(oracle.sketch_variance) == pytest.approx(1 / 7)


@pytest.mark.parametrize("kind", SKETCHES)
def test_function_by_function_counts_as_one_by_one(kind: Any) -> None:
    oracle = kind(epsilon=2.0, domain=Domain(range(90)), size=16, hashes=50)
    records = oracle.randomize_batch(np.arange(900) % 90, 1).records
    assert (
        oracle.tally(records).tolist()
        == oracle._one_by_one(records, oracle.device.functions(records)).tolist()
    )
    assert oracle.tally(records[:0]).tolist() == [0] * 90


@pytest.mark.parametrize("asked", [1, 3, 7])
def test_bit_flips_have_the_stated_moments(asked: int) -> None:
    oracle, repeats, n = BitFlip(epsilon=1.0, domain=Domain(range(7)), asked=asked), 3000, 100
    values, shares = np.repeat(np.arange(7), COUNTS // 10), COUNTS / 1000
    device = oracle.device
    records = oracle.randomize_batch(np.tile(values, repeats), 1).records.reshape(repeats, n, device.width)
    error = np.array([oracle.shares(oracle.tally(part), n) for part in records]) - shares
    stated = oracle.error_model.variance(shares) / n
    have_moments(error, stated, tells=0.25, kurtosis=3.4)
    matrix = error.T @ error / repeats
    off = matrix[~np.eye(7, dtype=bool)]
    apart = within(off, 1.3 * stated.max() / np.sqrt(repeats))
    accepts_only(apart, 0.0, as_of_shares_that_sum_to_1=-stated.max() / 6)


@pytest.mark.parametrize("asked", [1, 2])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_the_loss_of_bit_flips_holds_for_their_exact_law(asked: int, epsilon: float) -> None:
    oracle = BitFlip(epsilon=epsilon, domain=Domain(range(5)), asked=asked)
    laws = [oracle.device.probabilities(value) for value in (0, 1)]
    loss = oracle.privacy_loss
    for at in np.linspace(0.0, epsilon, 7):
        true = sum(max(0.0, float(p) - np.exp(at) * float(laws[1][row])) for row, p in laws[0].items())
        assert true <= loss.delta(at) + 1e-12
        if asked == 1:
            assert loss.delta(at) == pytest.approx(true, abs=1e-9)
    assert Shuffled(loss, clients=10_000).epsilon(1e-6) < epsilon / 2


@pytest.mark.parametrize(
    "oracle",
    [
        CountMeanSketch(epsilon=1.0, domain=Domain(range(50)), size=64, hashes=100),
        HadamardCountMeanSketch(epsilon=1.0, domain=Domain(range(50)), size=64, hashes=100),
        BitFlip(epsilon=1.0, domain=Domain(range(50)), asked=5),
    ],
    ids=lambda oracle: type(oracle).__name__,
)
def test_merges_and_hostile_bytes(oracle: Any) -> None:
    batches = [oracle.randomize_batch(np.arange(400) % 50, seed) for seed in range(3)]
    whole, left, right = (oracle.aggregator() for _ in range(3))
    for batch in batches:
        whole.add_batch(batch)
    left.add_batch(batches[0])
    right.add_batch(batches[1])
    right.merge(oracle.aggregator(whole.to_bytes()).merge(left))
    assert right.accepted == 2000
    assert left.merge(oracle.aggregator()).totals.tolist() == oracle.tally(batches[0].records).tolist()
    single = oracle.aggregator()
    assert all(single.add(record) for record in batches[0])
    assert single.totals.tolist() == left.totals.tolist()
    noise = np.random.default_rng(1).integers(0, 256, (4000, oracle.device.width), dtype=np.uint8)
    hostile = oracle.aggregator()
    hostile.add_batch(noise)
    assert hostile.accepted + sum(hostile.refused.values()) == 4000
    assert hostile.refused["specification"] > 3000
    oracle.device.layout.stamp(noise)
    before = hostile.refused["encoding"]
    hostile.add_batch(noise)
    assert hostile.refused["encoding"] > before + 500  # 100 functions in 7 bits, or categories out of order
    assert np.isfinite(hostile.estimate().frequencies).all()
    assert not hostile.add(batches[0][0][:-1])
    other = type(oracle)(epsilon=1.5, domain=oracle.domain)
    assert hostile.add_batch(other.randomize_batch([1, 2], 1)) == 0


def test_values_outside_are_refused_without_being_shown() -> None:
    for kind in (*SKETCHES, BitFlip):
        with pytest.raises(ParameterError, match="values must be categories") as told:
            kind(epsilon=1.0, domain=Domain(range(50))).randomize(987_654)
        assert "987" not in str(told.value)
