"""Rounds together: covariances of memoized reports, means and changes over rounds, and their intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local import (
    Domain,
    Estimate,
    LongitudinalLocalHashing,
    LongitudinalRandomizedResponse,
    LongitudinalUnaryEncoding,
    MemoizedBitFlip,
    MemoizedOneBitMean,
)
from sfumato.local.device.local_hashing import bucket_of
from sfumato.local.spread import Array
from tests.cases import cases
from tests.local.laws import SEVEN_SIGMA

BOTH: dict[str, Any] = {"epsilon": 1.0, "permanent_epsilon": 1.5, "domain": Domain(range(5))}
ORACLES: list[Any] = [
    LongitudinalRandomizedResponse(**BOTH),
    LongitudinalUnaryEncoding(**BOTH),
    LongitudinalUnaryEncoding(**{**BOTH, "permanent_epsilon": 2.0}, chain="OUE"),
    LongitudinalLocalHashing(**BOTH),
    LongitudinalLocalHashing(**BOTH, buckets=2),
    MemoizedBitFlip(epsilon=1.0, domain=Domain(range(5)), asked=2),
    MemoizedBitFlip(epsilon=1.0, domain=Domain(range(5)), asked=1),
    MemoizedBitFlip(epsilon=1.0, permanent_epsilon=1.5, domain=Domain(range(5)), asked=3),
]
JOINT = np.array(
    [[12, 8, 0, 0, 2], [0, 6, 2, 0, 0], [0, 0, 1, 0, 1], [0, 3, 0, 0, 0], [0, 0, 0, 0, 5]], np.float64
)
JOINT /= JOINT.sum()
COUNTS = np.array([700, 200, 0, 60, 40])


def name(oracle: Any) -> str:
    return f"{type(oracle).__name__}-{getattr(oracle, 'chain', '')}{getattr(oracle, 'buckets', '')}"


def shares(oracle: Any, records: Array, repeats: int) -> Array:
    """The estimates of each repeat alone."""
    n = len(records) // repeats
    return np.array([oracle.shares(oracle.tally(part), n) for part in np.split(records, repeats)])


@pytest.mark.parametrize("oracle", ORACLES, ids=name)
def test_two_rounds_covary_as_stated(oracle: Any) -> None:
    n, repeats = 40, 4000
    pairs = np.repeat(np.arange(25), np.rint(JOINT.ravel() * n).astype(int))
    first, second = np.tile(pairs // 5, repeats), np.tile(pairs % 5, repeats)
    rounds = oracle.randomize_rounds([first, second], 3)
    found = [shares(oracle, batch.records, repeats) for batch in rounds]
    truth = JOINT.sum(axis=1), JOINT.sum(axis=0)
    stated = [oracle.spread.variance(true) / n for true in truth]
    errors = [estimate - true for estimate, true in zip(found, truth, strict=True)]
    for error, variance in zip(errors, stated, strict=True):
        assert (abs(error.mean(axis=0)) <= SEVEN_SIGMA * np.sqrt(variance / repeats)).all()
    covariance = oracle.round_covariance(JOINT, n)
    spread = np.sqrt((stated[0] * stated[1] + covariance**2) / repeats)
    assert (abs((errors[0] * errors[1]).mean(axis=0) - covariance) <= 1.1 * SEVEN_SIGMA * spread).all()
    assert (covariance > 0).all()
    # It is not what independent rounds would have, by far.
    assert (covariance > 5 * spread).all()


@pytest.mark.parametrize("oracle", [ORACLES[0], ORACLES[1], ORACLES[3], ORACLES[7]], ids=name)
def test_rounds_drawn_at_once_have_the_moments_of_devices_that_never_change(oracle: Any) -> None:
    repeats, n, truth = 3000, int(COUNTS.sum()), COUNTS / COUNTS.sum()
    generator = np.random.default_rng(5)
    drawn = [oracle.simulate_rounds(COUNTS, 3, generator) for _ in range(repeats)]
    raw = np.array([[estimate.raw for estimate in rounds] for rounds in drawn]) - truth
    stated = oracle.spread.variance(truth) / n
    assert (abs(raw.mean(axis=0)) <= SEVEN_SIGMA * np.sqrt(stated / repeats)).all()
    assert (abs((raw**2).mean(axis=0) / stated - 1) <= 1.05 * SEVEN_SIGMA * np.sqrt(2 / repeats)).all()
    assert abs((raw**2).mean(axis=0).sum() / (3 * stated.sum()) - 1) <= 0.03
    shared = oracle.round_covariance(np.diag(truth), n)
    slack = SEVEN_SIGMA * np.sqrt((stated**2 + shared**2) / repeats)
    assert (abs((raw[:, 0] * raw[:, 2]).mean(axis=0) - shared) <= 1.1 * slack).all()
    # The mean over rounds: the bound is exact here, and no better than the memos allow.
    rounds = oracle.rounds([exact(oracle, truth, n)] * 3)
    means, told = raw.mean(axis=1), rounds.mean().variances
    assert (abs((means**2).mean(axis=0) / told - 1) <= 1.05 * SEVEN_SIGMA * np.sqrt(2 / repeats)).all()
    assert abs((means**2).mean(axis=0).sum() / told.sum() - 1) <= 0.03
    assert (told >= shared * (1 - 1e-9)).all()


@pytest.mark.parametrize("buckets", [2, 4])
def test_a_hash_function_that_stays_leaves_a_little_in_common(buckets: int) -> None:
    # Of one device that changes from the first value to the second: for one of these, and for another.
    oracle, n = LongitudinalLocalHashing(**BOTH, buckets=buckets), 200_000
    batches = oracle.randomize_rounds([np.zeros(n, int), np.ones(n, int)], 8)
    support = oracle.support
    for code, stated in zip((0, 4), oracle._changed, strict=True):
        parts = []
        for batch in batches:
            seeds, named = oracle.device.opened(batch.records)
            supported = bucket_of(seeds, np.full(n, code), buckets) == named
            parts.append((supported - float(support.other)) / float(support.gap))
        found = np.mean((parts[0] - parts[0].mean()) * (parts[1] - parts[1].mean()))
        slack = SEVEN_SIGMA * np.std(parts[0]) * np.std(parts[1]) / np.sqrt(n)
        assert abs(found - float(stated)) <= slack < float(stated) / 2


def exact(oracle: Any, truth: Array, n: int) -> Estimate:
    """An estimate that is right, for its variances."""
    return Estimate(
        domain=oracle.domain, reports=n, raw=truth, spread=oracle.spread, loss=oracle.privacy_loss
    )


@pytest.mark.parametrize("oracle", [ORACLES[0], ORACLES[3]], ids=name)
def test_intervals_over_rounds_hold_as_often_as_they_say(oracle: Any) -> None:
    repeats, counts, truth = 1200, COUNTS * 200, COUNTS / COUNTS.sum()
    generator = np.random.default_rng(6)
    held = np.zeros((2, 5))
    kept = oracle.round_covariance(np.diag(truth), int(counts.sum()))
    for _ in range(repeats):
        rounds = oracle.rounds(oracle.simulate_rounds(counts, 4, generator))
        mean, change = rounds.mean().interval(0.95), rounds.change(covariance=kept).interval(0.95)
        held[0] += (mean.lower <= truth) & (truth <= mean.upper)
        held[1] += (change.lower <= 0) & (change.upper >= 0)
    rates = held / repeats
    assert (rates >= 0.95 - SEVEN_SIGMA * np.sqrt(0.95 * 0.05 / repeats)).all()
    assert (rates.mean(axis=1) <= 0.96 + SEVEN_SIGMA * np.sqrt(0.96 * 0.04 / repeats)).all()


def test_bounds_on_means_and_changes_hold_whatever_changes() -> None:
    # Half of the devices move; then mean and change have less variance than is stated without that knowledge.
    n, repeats = 40, 2000
    pairs = np.repeat(np.arange(25), np.rint(JOINT.ravel() * n).astype(int))
    for oracle in (ORACLES[0], ORACLES[3], ORACLES[5]):
        batches = oracle.randomize_rounds([np.tile(pairs // 5, repeats), np.tile(pairs % 5, repeats)], 9)
        one, two = (shares(oracle, batch.records, repeats) for batch in batches)
        rounds = oracle.rounds([exact(oracle, JOINT.sum(axis=1), n), exact(oracle, JOINT.sum(axis=0), n)])
        slack = 1 + SEVEN_SIGMA * np.sqrt(2 / repeats) * 1.1
        assert (((one + two) / 2).var(axis=0) <= rounds.mean().variances * slack).all()
        assert ((two - one).var(axis=0) <= rounds.change().variances * slack).all()
        known = rounds.change(covariance=oracle.round_covariance(JOINT, n)).variances
        assert abs(((two - one).var(axis=0) / known) - 1).max() <= slack - 1
        assert (known < rounds.change().variances).all()


def test_rounds_without_reports_and_odd_questions() -> None:
    oracle = ORACLES[0]
    empty = oracle.aggregator().estimate()
    rounds = oracle.rounds([empty, oracle.simulate(COUNTS, 1)])
    assert np.isinf(rounds.mean().variances).all()
    lower, upper, _ = rounds.change().interval()
    assert (lower == -1).all()
    assert (upper == 1).all()
    assert rounds.simulated
    assert rounds.loss == oracle.longitudinal_loss()
    assert rounds.mean().stddev.shape == (5,)
    with pytest.raises(ParameterError, match="level must be"):
        rounds.mean().interval(1.0)
    with pytest.raises(ParameterError, match="rounds must be"):
        oracle.simulate_rounds(COUNTS, 0)
    with pytest.raises(ParameterError, match="true_counts must be"):
        oracle.simulate_rounds(COUNTS[:2], 2)
    for place in (2, -3, 0.5, True):
        with pytest.raises(ParameterError, match="first must be a round's place from -2 to 1"):
            rounds.change(place)
    for odd in (np.zeros(3), np.nan):
        with pytest.raises(ParameterError, match="covariance must be 5 finite numbers"):
            rounds.change(covariance=odd)
    for odd in (JOINT[:2], JOINT * 2, -JOINT, JOINT * np.nan):
        with pytest.raises(ParameterError, match="joint must be 5 times 5 shares"):
            oracle.round_covariance(odd, 10)
    with pytest.raises(ParameterError, match="n must be"):
        oracle.round_covariance(JOINT, 0)
    for none in ([], [3], [MemoizedOneBitMean(epsilon=1.0, bounds=(0, 1)).aggregator().estimate()]):
        with pytest.raises(ParameterError, match="estimates must be one or more"):
            oracle.rounds(none)


@cases("oracle", ORACLES, ids=name)
def test_merges_are_exact_and_hostile_bytes_are_counted(oracle: Any) -> None:
    batches = [oracle.randomize_batch(np.arange(400) % 5, seed) for seed in range(3)]
    whole, left, right = (oracle.aggregator() for _ in range(3))
    for batch in batches:
        whole.add_batch(batch)
    left.add_batch(batches[0])
    for record in batches[1]:
        assert right.add(record)
    right.add_batch(batches[2].to_bytes())
    assert left.merge(right.to_bytes()).totals.tolist() == whole.totals.tolist()
    noise = np.random.default_rng(1).integers(0, 256, (2000, oracle.device.width), dtype=np.uint8)
    hostile = oracle.aggregator()
    hostile.add_batch(noise)
    oracle.device.layout.stamp(noise)
    hostile.add_batch(noise)
    assert hostile.accepted + sum(hostile.refused.values()) == 4000
    assert hostile.refused["specification"] > 1500
    assert not hostile.add(batches[0][0] + b"x")
    assert np.isfinite(hostile.estimate().frequencies).all()
    others = type(oracle)(epsilon=0.9, domain=oracle.domain)
    assert oracle.aggregator().add_batch(others.randomize_batch([1, 2], 1)) == 0


def test_a_million_million_devices_are_drawn_at_once() -> None:
    for oracle in ORACLES:
        for estimate in oracle.simulate_rounds(COUNTS * 10**9, 2, 1):
            assert np.allclose(estimate.raw, COUNTS / 1000, atol=1e-4)


def test_rounds_of_another_epsilon_are_refused() -> None:
    domain = Domain(["a", "b", "c"])
    one, other = (
        LongitudinalRandomizedResponse(epsilon=epsilon, permanent_epsilon=2.0, max_memos=2, domain=domain)
        for epsilon in (1.0, 0.5)
    )
    told, foreign = one.simulate([10, 20, 30], 1), other.simulate([10, 20, 30], 1)
    assert one.rounds([told, told.consistent("norm-sub")]).mean().values.shape == (3,)
    for estimates in ([told, foreign], [], "x"):
        with pytest.raises(ParameterError, match=r"estimates must be one or more Estimates of this oracle"):
            one.rounds(estimates)  # type: ignore[arg-type]
    numbers, others = (MemoizedOneBitMean(epsilon=epsilon, bounds=(0.0, 1.0)) for epsilon in (1.0, 0.5))
    single = numbers.rounds([numbers.simulate([0.5], rng=1)] * 2)  # one report a round: no variance is known
    assert np.isinf(single.mean().variances).all()
    ends = single.mean().interval()
    assert (ends.lower.tolist(), ends.upper.tolist()) == ([0.0], [1.0])
    with pytest.raises(ParameterError, match=r"estimates must be one or more MeanEstimates of this protocol"):
        numbers.rounds([others.simulate([0.5], rng=1)])
