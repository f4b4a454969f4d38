"""Several questions: no bias, the spread that is stated, intervals that cover, and whatever bytes come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.audit import audit
from sfumato.errors import ParameterError
from sfumato.local import (
    Domain,
    OptimalLocalHashing,
    OptimizedUnaryEncoding,
    RandomizedResponse,
    SampledAttribute,
    SplitBudget,
)
from sfumato.local.baselines import FakeData
from sfumato.privacy import Neighboring
from tests.cases import cases
from tests.chance import accepts_only
from tests.local.laws import audited, covers, have_moments, within

KINDS: list[Any] = [SplitBudget, SampledAttribute, FakeData]
ORACLES: list[Any] = [RandomizedResponse, OptimizedUnaryEncoding, OptimalLocalHashing]
DOMAINS = [Domain(range(3)), Domain(range(5)), Domain(range(2))]
PEOPLE = np.array([[0, 4, 1]] * 50 + [[1, 4, 0]] * 30 + [[2, 0, 0]] * 20)
SHARES = [np.array([0.5, 0.3, 0.2]), np.array([0.2, 0, 0, 0, 0.8]), np.array([0.5, 0.5])]
CERTAIN = 1 - 1e-11


@cases("kind", KINDS)
@cases("oracle", ORACLES)
def test_no_bias(kind: Any, oracle: Any) -> None:
    protocol = kind(epsilon=2.0, domains=DOMAINS, oracle=oracle)
    aggregator = protocol.aggregator()
    aggregator.add_batch(protocol.randomize_batch(np.tile(PEOPLE, (600, 1)), 3))
    for estimate, shares in zip(aggregator.estimate(), SHARES, strict=True):
        moved = shares + 0.2 * (np.arange(len(shares)) == 0) - 0.2 * (np.arange(len(shares)) == 1)
        accepts_only(within(estimate.frequencies, estimate.stddev), shares, a_fifth_moved=moved)
        assert estimate.simulated


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("oracle", ORACLES[:2])
def test_spreads_and_intervals(kind: Any, oracle: Any) -> None:
    protocol, repeats, n = kind(epsilon=2.0, domains=DOMAINS, oracle=oracle), 500, 3 * len(PEOPLE)
    records = protocol.randomize_batch(np.tile(PEOPLE, (3 * repeats, 1)), 5).records
    found, hits, asked = [], np.zeros(5), []
    for part in np.split(records, repeats):
        estimate = protocol.estimate(protocol.tally(part), n)[1]
        found.append(estimate.raw)
        asked.append(estimate.reports)
        low, high, _ = estimate.interval(0.95)
        hits += (low <= SHARES[1]) & (SHARES[1] <= high)
    errors = np.array(found) - SHARES[1]
    stated = (estimate.error_model.variance(SHARES[1]) / np.mean(asked)).astype(float)
    have_moments(errors, stated, tells=0.55, kurtosis=3.5)
    planned = np.array([protocol.variance(n, float(share))[1] for share in SHARES[1]])
    assert planned == pytest.approx(
        stated, rel=0.1
    )  # how many are asked, and left out, is drawn in each part
    matrix = errors.T @ errors / repeats
    expected = estimate.error_model.covariance(SHARES[1], np.arange(5)) / np.mean(asked)
    found_matrix = within(matrix, 1.3 * np.sqrt(np.outer(stated, stated) * 2 / repeats))
    accepts_only(found_matrix, expected, twice=2 * expected)
    covers(hits, repeats, claimed=0.9995)


@cases("kind", KINDS)
@cases("oracle", ORACLES)
def test_what_is_planned_is_what_many_tell(kind: Any, oracle: Any) -> None:
    protocol, n = kind(epsilon=2.0, domains=DOMAINS, oracle=oracle), 10**8
    estimates = protocol.simulate([[0, 4, 1], [1, 4, 0], [2, 0, 0]], [n // 2, n // 10 * 3, n // 5])
    for at, (estimate, shares) in enumerate(zip(estimates, SHARES, strict=True)):
        planned = [protocol.variance(n, float(share))[at] for share in shares]
        assert planned == pytest.approx(list(estimate.variances), rel=0.002)


def test_plans_of_nobody_or_no_share_are_refused() -> None:
    protocol = SampledAttribute(epsilon=2.0, domains=DOMAINS)
    for rule, n, share in (("n must", 0, 0.0), ("frequency must", 1, 1.5), ("frequency must", 1, -0.1)):
        with pytest.raises(ParameterError, match=rule):
            protocol.variance(n, share)


def test_sampling_has_less_error_than_splitting_and_than_hiding() -> None:
    spreads = {}
    for kind in KINDS:
        protocol = kind(epsilon=1.0, domains=[Domain(range(20))] * 5)
        aggregator = protocol.aggregator()
        aggregator.add_batch(protocol.randomize_batch(np.zeros((20_000, 5), np.int64), 1))
        spreads[kind] = float(aggregator.estimate()[0].variances[7])
    assert spreads[SampledAttribute] < spreads[SplitBudget] / 3
    assert spreads[SampledAttribute] < spreads[FakeData] / 3


@cases("kind", KINDS)
@cases("oracle", ORACLES)
def test_losses_are_close_to_epsilon_and_never_above(kind: Any, oracle: Any) -> None:
    for epsilon in (0.3, 1.0, 4.0):
        loss = kind(epsilon=epsilon, domains=DOMAINS, oracle=oracle).privacy_loss
        assert loss.neighboring is Neighboring.REPLACE_ONE
        # Unary coins are short, and split ones short of a small part.
        assert 0.99 * epsilon <= loss.epsilon(0.0) <= epsilon * (1 + 1e-12)
        assert loss.epsilon(1e-3) < epsilon


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_merge_and_whatever_bytes_come_are_counted(kind: Any) -> None:
    protocol = kind(epsilon=1.0, domains=DOMAINS)
    batch = protocol.randomize_batch(PEOPLE, 1)
    whole, single = protocol.aggregator(), protocol.aggregator()
    whole.add_batch(batch)
    assert all(single.add(record) for record in batch)
    assert single.totals.tolist() == whole.totals.tolist()
    merged = protocol.aggregator(whole.to_bytes()).merge(single.to_bytes())
    assert merged.totals.tolist() == (2 * whole.totals).tolist()
    noise = np.random.default_rng(5).integers(0, 256, (20_000, protocol.device.width), dtype=np.uint8)
    protocol.device.layout.stamp(noise[:5000])
    merged.add_batch(noise)
    merged.add(b"x")
    merged.add_batch(kind(epsilon=1.1, domains=DOMAINS).randomize_batch(PEOPLE, 1))
    assert merged.accepted + sum(merged.refused.values()) == 200 + 20_001 + 100
    assert merged.refused["encoding"] > 0
    assert merged.refused["specification"] > 10_000


@cases("kind", KINDS)
@cases("domains", [3, None, "ab", [Domain(range(3)), "ab"]])
def test_what_are_no_domains_is_refused(kind: Any, domains: Any) -> None:
    with pytest.raises(ParameterError, match="domains must be a list of Domains"):
        kind(epsilon=1.0, domains=domains)


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_tells_nothing(kind: Any) -> None:
    protocol = kind(epsilon=1.0, domains=DOMAINS)
    for estimate in protocol.aggregator().estimate():
        assert np.isnan(estimate.raw).all()
        assert np.isinf(estimate.variances).all()
    wrong: Any = int
    with pytest.raises(ParameterError, match=r"oracle must be a .* oracle whose .*, got <class 'int'>; pass"):
        kind(epsilon=1.0, domains=DOMAINS, oracle=wrong)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [4.0, 1.0])
def test_the_bytes_keep_epsilon_and_use_it(kind: Any, epsilon: float) -> None:
    protocol = kind(epsilon=epsilon, domains=[Domain(range(2))] * 2, oracle=RandomizedResponse)
    generator = np.random.default_rng(7)
    trials = {1.0: 500_000, 4.0: 150_000}[epsilon]
    found = audit(
        lambda value, size: protocol.randomize_batch(np.full((size, 2), value), generator).records,
        epsilon=epsilon,
        pairs=[(0, 1)],
        trials=trials,
        batch=True,
        confidence=CERTAIN,
    )
    assert not found.violated
    accepts_only(audited(found), epsilon, nine_tenths=0.9 * epsilon)


def test_who_was_not_asked_is_in_the_spread() -> None:
    # So great an epsilon that nearly all error is that only every second person is asked each question.
    protocol = SampledAttribute(epsilon=12.0, domains=[Domain(range(2))] * 2, oracle=RandomizedResponse)
    people, repeats, hits, errors, stated = np.array([[0, 1]] * 60 + [[1, 0]] * 40), 1000, 0, [], []
    records = protocol.randomize_batch(np.tile(people, (repeats, 1)), 5).records
    for part in np.split(records, repeats):
        estimate = protocol.estimate(protocol.tally(part), len(people))[0]
        low, high, _ = estimate.interval(0.95)
        hits += bool(low[0] <= 0.6 <= high[0])
        errors.append(estimate.raw[0] - 0.6)
        stated.append(estimate.variances[0])
    have_moments(errors, np.mean(stated), tells=0.4)
    # Counts of a hundred people are coarse.
    covers(hits, repeats, 0.93, claimed=0.995)
