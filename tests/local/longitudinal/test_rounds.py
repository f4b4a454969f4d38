"""Rounds together: covariances of memoized reports, means and changes over rounds, and their intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import combinations, product
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
from sfumato.local.device.frequency.local_hashing import bucket_of
from sfumato.local.frequency.variance import Array
from tests.cases import cases
from tests.chance import accepts_only, at_least, at_most
from tests.local.laws import SEVEN_SIGMA, have_moments, within

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


class Exact:
    """Means, variances and covariances of what one device adds to the estimates, over all that it can draw.

    A device draws something for good (a hash function, the categories that it is asked of), a memo for each
    of its keys, and each report from a memo. Chances are axes: for good, memos, reports.

    Attributes
    ----------
    means, variances : array, shape (values, categories)
        Of one report, by the value.
    shared : array, shape (values, values, categories)
        Covariances of two reports in two rounds, by the values.
    """

    def __init__(self, oracle: Any) -> None:
        keys, memos, reports, parts = everything(oracle)
        given_memo = np.einsum("gmr,grv->gmv", reports, parts)
        given_key = np.einsum("gkm,gmv->gkv", memos, given_memo)
        twice = np.einsum("gkm,gmv->gkv", memos, given_memo**2)
        square = np.einsum("gkm,gmr,grv->gkv", memos, reports, parts**2)
        every = np.arange(len(keys))[:, None]
        self.means = given_key[every, keys].mean(axis=0)
        self.variances = square[every, keys].mean(axis=0) - self.means**2
        alike = (keys[:, :, None] == keys[:, None, :])[..., None]
        own = given_key[every, keys]
        products = np.where(alike, twice[every, keys][:, :, None], own[:, :, None] * own[:, None])
        self.shared = products.mean(axis=0) - self.means[:, None] * self.means[None]


def everything(oracle: Any) -> tuple[Any, Any, Any, Any]:
    """All that a device can draw for good, each as likely as the others.

    Returns the key of each value; the chances of memos given the key, and of reports given the memo; and what
    each report adds to the estimates.
    """
    device, size = oracle.device, len(oracle.domain)
    if isinstance(oracle, LongitudinalLocalHashing):
        # One seed for each function from values to buckets: ideally, each function is as likely.
        buckets = device.max_keys
        tried = np.arange(1 << 15, dtype=np.uint32)
        images = np.array([bucket_of(tried, np.full(len(tried), value), buckets) for value in range(size)]).T
        keys, places = np.unique(images, axis=0, return_index=True)
        assert len(keys) == buckets**size
        supported = keys[:, None] == np.arange(buckets)[:, None]
        named = np.arange(buckets, dtype=np.uint64) << np.uint64(32)
        records = device.layout.pack((named + tried[places, None]).ravel())
        assert (oracle.tally(records) == supported.sum(axis=(0, 1))).all()
        own = laws(device.inner.permanent.probabilities, device.inner.fresh_probabilities, buckets)
        memos, reports = (np.array([law] * len(keys)) for law in own)
        return keys, memos, reports, oracle.support.shares(supported, 1)
    if isinstance(oracle, MemoizedBitFlip):
        asked, layers = device.asked, device.layers
        drawn = np.array(list(combinations(range(size), asked)))
        bits = np.array(list(product((False, True), repeat=asked)))
        true = np.vstack([np.eye(asked, dtype=np.bool_), np.zeros((1, asked), np.bool_)])
        memos, reports = (
            np.where(given[:, None] == bits[None], chance, 1 - chance).prod(axis=2)
            for given, chance in ((true, float(layers.memo.chance)), (bits, float(layers.again_chance)))
        )
        found = drawn[:, None, :] == np.arange(size)[None, :, None]
        keys = np.where(found.any(axis=2), found.argmax(axis=2), asked)
        records = (device.inner.packed(np.tile(places, (len(bits), 1)), bits) for places in drawn)
        parts = np.array([[oracle.shares(oracle.tally(one[None]), 1) for one in each] for each in records])
        return keys, *(np.array([law] * len(keys)) for law in (memos, reports)), parts
    memos, reports = laws(device.permanent.probabilities, device.fresh_probabilities, size)
    rows = device.fresh_probabilities(next(iter(device.permanent.probabilities(0))))
    told = [oracle.shares(oracle.tally(np.frombuffer(row, np.uint8)[None]), 1) for row in rows]
    return np.arange(size)[None], memos[None], reports[None], np.array(told)[None]


def laws(permanent: Any, fresh: Any, size: int) -> tuple[Array, Array]:
    """The chances of memos by the value, and those of reports by the memo."""
    memos = [permanent(value) for value in range(size)]
    reports = [fresh(memo) for memo in memos[0]]
    return numbers(memos), numbers(reports)


def numbers(told: list[Mapping[bytes, Fraction]]) -> Array:
    """Laws of the same outcomes, in the same order."""
    return np.array([[float(law[outcome]) for outcome in told[0]] for law in told])


@cases("oracle", ORACLES, ids=name)
def test_the_moments_of_two_rounds_are_those_of_all_that_devices_draw(oracle: Any) -> None:
    exact, ends = Exact(oracle), (JOINT.sum(axis=1), JOINT.sum(axis=0))
    np.testing.assert_allclose(exact.means, np.eye(5), atol=1e-12)
    for truth in ends:
        np.testing.assert_allclose(oracle.error_model.variance(truth), truth @ exact.variances, rtol=1e-9)
        kept = truth @ exact.shared[np.arange(5), np.arange(5)]
        np.testing.assert_allclose(oracle.permanent_error_model.variance(truth), kept, rtol=1e-9)
    shared = np.einsum("ab,abv->v", JOINT, exact.shared)
    np.testing.assert_allclose(oracle.round_covariance(JOINT, 40), shared / 40, rtol=1e-9)
    assert (shared > 0).all()


@cases("oracle", ORACLES, ids=name)
def test_means_and_changes_have_the_variances_of_all_that_devices_draw(oracle: Any) -> None:
    """Half of the devices move; then both have less variance than is stated without that knowledge."""
    drawn, n = Exact(oracle), 40
    ends = JOINT.sum(axis=1), JOINT.sum(axis=0)
    both = sum(truth @ drawn.variances for truth in ends) / n
    shared = np.einsum("ab,abv->v", JOINT, drawn.shared) / n
    rounds = oracle.rounds([exact(oracle, truth, n) for truth in ends])
    known = rounds.change(covariance=oracle.round_covariance(JOINT, n)).variances
    np.testing.assert_allclose(known, both - 2 * shared, rtol=1e-9)
    assert (known < rounds.change().variances).all()
    assert ((both + 2 * shared) / 4 < rounds.mean().variances).all()


@pytest.mark.parametrize("oracle", ORACLES, ids=name)
def test_reports_of_two_rounds_covary_as_stated(oracle: Any) -> None:
    """Devices that keep their values and that change them: what they send, not its law."""
    n, repeats = 40, 4000
    pairs = np.repeat(np.arange(25), np.rint(JOINT.ravel() * n).astype(int))
    first, second = np.tile(pairs // 5, repeats), np.tile(pairs % 5, repeats)
    rounds = oracle.randomize_rounds([first, second], 3)
    truth = JOINT.sum(axis=1), JOINT.sum(axis=0)
    stated = [oracle.error_model.variance(true) / n for true in truth]
    one, other = (
        np.array([oracle.shares(oracle.tally(part), n) for part in np.split(batch.records, repeats)]) - true
        for batch, true in zip(rounds, truth, strict=True)
    )
    for error, variance in zip((one, other), stated, strict=True):
        have_moments(error, variance, tells=0.3)

    products, kept = one * other, oracle.round_covariance(JOINT, n)
    assert (
        abs(products.mean(axis=0) - kept) <= 1.1 * SEVEN_SIGMA * products.std(axis=0) / repeats**0.5
    ).all()
    total, still = products.sum(axis=1), oracle.round_covariance(np.diag(truth[0]), n)
    covariance = within(total.mean(), total.std() / repeats**0.5)
    accepts_only(covariance, kept.sum(), independent=0.0, nobody_moves=still.sum())


@pytest.mark.parametrize("oracle", [ORACLES[0], ORACLES[1], ORACLES[3], ORACLES[7]], ids=name)
def test_rounds_drawn_at_once_have_the_moments_of_devices_that_never_change(oracle: Any) -> None:
    repeats, n, truth = 3000, int(COUNTS.sum()), COUNTS / COUNTS.sum()
    generator = np.random.default_rng(5)
    drawn = [oracle.simulate_rounds(COUNTS, 3, generator) for _ in range(repeats)]
    raw = np.array([[estimate.raw for estimate in rounds] for rounds in drawn]) - truth
    stated = oracle.error_model.variance(truth) / n
    have_moments(raw, stated, tells=0.25)
    shared = oracle.round_covariance(np.diag(truth), n)

    def check(covariance: Array) -> None:
        slack = SEVEN_SIGMA * np.sqrt((stated**2 + covariance**2) / repeats)
        assert (abs((raw[:, 0] * raw[:, 2]).mean(axis=0) - covariance) <= 1.1 * slack).all()

    accepts_only(check, shared, independent=0 * shared, one_memo_of_all=stated)
    # The mean over rounds: the bound is exact here, and no better than the memos allow.
    rounds = oracle.rounds([exact(oracle, truth, n)] * 3)
    told = rounds.mean().variances
    have_moments(raw.mean(axis=1), told, tells=0.25)
    for errors, variances in ((raw, np.array([stated] * 3)), (raw.mean(axis=1), told)):
        off = {"a_twentieth_less": 0.95 * variances, "a_twentieth_more": 1.05 * variances}
        accepts_only(summed(errors), variances, **off)
    assert (told >= shared * (1 - 1e-9)).all()


def summed(errors: Array) -> Callable[[Array], None]:
    """A check of the sum of squared errors, of rounds and categories, which is known to 3 %."""
    square = (errors**2).mean(axis=0).sum()

    def check(variances: Array) -> None:
        assert abs(square / variances.sum() - 1) <= 0.03

    return check


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
        slack = np.std(parts[0]) * np.std(parts[1]) / np.sqrt(n)
        accepts_only(within(found, slack), float(stated), independent=0.0, twice=2 * float(stated))


def exact(oracle: Any, truth: Array, n: int) -> Estimate:
    """An estimate that is right, for its variances."""
    return Estimate(
        domain=oracle.domain, reports=n, raw=truth, error_model=oracle.error_model, loss=oracle.privacy_loss
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
    for hits in held.astype(int):
        accepts_only(at_least(min(hits), repeats), 0.95, as_of_99=0.99)
        accepts_only(at_most(int(hits.mean()), repeats), 0.96, as_of_87=0.87)


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
        with pytest.raises(ParameterError, match="first must be a round's index from -2 to 1"):
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
