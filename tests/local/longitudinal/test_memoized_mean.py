"""Numbers asked again and again: unbiased, the error of one bit, the same in every round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local import MemoizedOneBitMean, OneBitMean
from tests.chance import accepts_only, at_least, at_most
from tests.local.laws import have_moments, within

NUMBERS = np.array([0.0, 1.2, 5.5, 8.0])


@pytest.mark.parametrize("steps", [1, 4])
def test_reports_and_simulated_ones_have_the_stated_moments(steps: int) -> None:
    protocol = MemoizedOneBitMean(epsilon=1.0, bounds=(0.0, 8.0), steps=steps)
    n, repeats = 40, 2000
    values = np.repeat(NUMBERS, n // 4)
    (batch,) = protocol.randomize_rounds([np.tile(values, repeats)], 3)
    totals = batch.records[:, 0].reshape(repeats, n) & 1
    found = np.array([protocol.estimate(np.array([one, one]), n).mean for one in totals.sum(axis=1)])
    stated = np.mean([protocol.variance(n, float(value)) for value in NUMBERS])
    have_moments(found - NUMBERS.mean(), stated, tells=0.3)
    generator = np.random.default_rng(3)
    drawn = np.array([protocol.simulate(NUMBERS, np.full(4, n // 4), generator).mean for _ in range(repeats)])
    have_moments(drawn - NUMBERS.mean(), stated, tells=0.3)
    assert protocol.variance(1) == OneBitMean(epsilon=1.0, bounds=(0.0, 8.0)).variance(1)


def test_rounds_of_numbers_that_stay_say_the_same() -> None:
    protocol = MemoizedOneBitMean(epsilon=1.0, bounds=(0.0, 8.0), steps=2)
    values = np.repeat(NUMBERS, 500)
    batches = protocol.randomize_rounds([values] * 3, 4)
    assert all((batch.records == batches[0].records).all() for batch in batches)
    found: list[Any] = []
    for batch in batches:
        aggregator = protocol.aggregator()
        assert aggregator.add_batch(batch) == 2000
        found.append(aggregator.estimate())
    rounds = protocol.rounds(found)
    assert rounds.mean().values[0] == pytest.approx(found[0].mean)
    assert rounds.mean().variances[0] == pytest.approx(found[0].variance)
    assert rounds.change().values.tolist() == [0.0]
    assert rounds.change().interval().upper[0] <= 8.0
    many = protocol.simulate_rounds(NUMBERS, np.full(4, 10**8), 2)
    assert many[0] == many[1]
    assert many[0].mean == pytest.approx(NUMBERS.mean(), abs=1e-2)


def test_rounds_that_are_told_again_share_their_memos() -> None:
    protocol = MemoizedOneBitMean(epsilon=1.0, permanent_epsilon=2.0, bounds=(0.0, 8.0), steps=4)
    n, repeats = 40, 3000
    values = np.repeat(NUMBERS, n // 4)
    batches = protocol.randomize_rounds([np.tile(values, repeats)] * 3, 3)
    ones = np.array([(batch.records[:, 0].reshape(repeats, n) & 1).sum(axis=1) for batch in batches])
    found = np.array([[protocol.estimate(np.array([x, x]), n).mean for x in row] for row in ones])
    generator = np.random.default_rng(4)
    drawn = np.array(
        [
            [one.mean for one in protocol.simulate_rounds(NUMBERS, np.full(4, n // 4), 3, generator)]
            for _ in range(repeats)
        ]
    ).T
    one_round, memo = (
        np.mean([each.variance(n, float(value)) for value in NUMBERS])
        for each in (protocol, protocol.permanent)
    )
    whole = memo + (one_round - memo) / 3
    for means in (found, drawn):
        have_moments(means.T - NUMBERS.mean(), one_round, tells=0.2)
        covariance = within(np.cov(means[0], means[2])[0, 1], one_round * np.sqrt(2 / repeats))
        accepts_only(covariance, memo, independent=0.0, the_same_reports=one_round)
        have_moments(means.mean(axis=0) - NUMBERS.mean(), whole, tells=0.2)
    # Of numbers that are alike the bound on the mean over rounds is exact, but for one part in n.
    alike = protocol.rounds(protocol.simulate_rounds([3.0], [10**6], 3, 1)).mean().variances[0]
    ends = [each.variance(10**6, 3.0) for each in (protocol, protocol.permanent)]
    assert alike == pytest.approx(ends[1] + (ends[0] - ends[1]) / 3, rel=1e-3)
    assert protocol.longitudinal_loss().epsilon(0.0) == pytest.approx(8.0)


def test_intervals_hold_for_numbers_that_are_alike() -> None:
    protocol = MemoizedOneBitMean(epsilon=1.0, bounds=(0.0, 8.0))
    generator, repeats = np.random.default_rng(2), 1000
    held = 0
    for _ in range(repeats):
        lower, upper, _ = protocol.rounds([protocol.simulate([3.0], [10_000], generator)]).mean().interval()
        held += bool(lower[0] <= 3.0 <= upper[0])
    accepts_only(at_least(held, repeats), 0.95, as_of_99=0.99)
    accepts_only(at_most(held, repeats), 0.96, as_of_87=0.87)


def test_odd_questions_are_refused() -> None:
    with pytest.raises(ParameterError, match="max_memos must be"):
        MemoizedOneBitMean(epsilon=1.0, bounds=(0.0, 8.0), max_memos=0)
    protocol = MemoizedOneBitMean(epsilon=1.0, bounds=(0.0, 8.0))
    with pytest.raises(ParameterError, match="estimates must be one or more"):
        protocol.rounds([])
    with pytest.raises(ParameterError, match="rounds must be"):
        protocol.simulate_rounds(NUMBERS, None, 0)
