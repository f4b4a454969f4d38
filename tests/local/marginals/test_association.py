"""Two attributes together: correlations that are held, and tests of the right level."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local import Correlation, Domain, FourierMarginals, SampledMarginals
from tests.chance import accepts_only, rate
from tests.local.laws import covers, have_moments

DOMAINS = [Domain(range(3)), Domain(range(2)), Domain(range(4))]
KINDS = np.array(list(product(range(3), range(2), range(4))))
FIRST, SECOND = np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.4])
N = 20_000


def population(tie: float) -> Any:
    """Shares of the kinds: the first attribute independent of the second, and tied to the third."""
    third = np.full((3, 4), (1 - tie) / 4)
    third[np.arange(3), np.arange(3)] += tie
    return (FIRST[:, None, None] * SECOND[None, :, None] * third[:, None, :]).ravel()


def protocol(which: int) -> Any:
    if which:
        return SampledMarginals(epsilon=2.0, domains=DOMAINS, views=[(0, 1), (0, 2)])
    return FourierMarginals(epsilon=2.0, domains=DOMAINS, order=2)


@pytest.mark.parametrize("which", [0, 1])
def test_correlations_and_levels(which: int) -> None:
    made, repeats, generator = protocol(which), 300, np.random.default_rng(which)
    shares, scores = population(0.3), (None, [0.0, 1.0, 4.0, 2.0])
    people = generator.multinomial(N, shares)
    # The respondents' own correlation.
    numbers = KINDS[:, 0], np.array(scores[1])[KINDS[:, 2]]
    wanted = np.cov(*numbers, fweights=people)
    true = wanted[0, 1] / np.sqrt(wanted[0, 0] * wanted[1, 1])
    away, held, levels = [], 0, []
    for _ in range(repeats):
        estimate = made.simulate(KINDS, people, generator)
        found = estimate.correlation(0, 2, scores=scores)
        away.append((found.value - true) / found.stddev)
        low, high, _ = found.interval()
        held += low <= true <= high
        # The test is about the population: others might have answered.
        levels.append(
            made.simulate(KINDS, generator.multinomial(N, shares), generator).independence(0, 1).p_value
        )
    have_moments(away, 1.0, tells=0.7)
    covers(held, repeats, claimed=0.9995)
    # The square roots of p values that are too small by half of them are those of others.
    for level, other in ((0.05, 0.25), (0.3, 0.09), (0.7, 0.4)):
        accepts_only(rate(sum(p <= level for p in levels), repeats), level, of_other_answers=other)


@pytest.mark.parametrize("which", [0, 1])
def test_what_goes_together_is_seen(which: int) -> None:
    people = np.rint(1e6 * population(0.5)).astype(int)
    estimate = protocol(which).simulate(KINDS, people, 1)
    assert estimate.independence(0, 2).p_value < 1e-6
    assert estimate.independence(0, 2).degrees == 6
    assert estimate.correlation(0, 2).interval(0.999).lower > 0.1


def test_nobody_tells_nothing() -> None:
    for which in (0, 1):
        estimate = protocol(which).aggregator().estimate()
        found = estimate.correlation(0, 1)
        assert isinstance(found, Correlation)
        assert np.isnan(found.value)
        assert (found.interval().lower, found.interval().upper) == (-1.0, 1.0)
        assert estimate.independence(0, 1).p_value == 1.0


@pytest.mark.parametrize("which", [0, 1])
def test_few_reports_tell_nothing_of_what_they_leave_out(which: int) -> None:
    made = protocol(which)
    for seed in range(3):
        aggregator = made.aggregator()
        aggregator.add(made.randomize((0, 1, 2), seed))
        estimate = aggregator.estimate()
        assert 1.0 in {estimate.independence(0, at).p_value for at in (1, 2)}
        unknown = [at for at in (1, 2) if np.isnan(estimate.marginal(0, at).raw).any()]
        assert unknown
        with pytest.raises(ParameterError, match="reports must be enough to estimate each share"):
            estimate.marginal(0, unknown[0]).consistent("norm-sub")


def test_states_that_nobody_counted_tell_something_and_never_crash() -> None:
    made = protocol(0)
    aggregator = made.aggregator()
    aggregator.add_batch(made.randomize_batch([(0, 1, 2)] * 500, 1))
    state, generator = bytearray(aggregator.to_bytes()), np.random.default_rng(1)
    for _ in range(5):
        forged = generator.integers(-5, 5, made.totals).astype("<i8").tobytes()
        state[-len(forged) :] = forged
        estimate = made.aggregator(bytes(state)).estimate()
        assert len(estimate.marginal(0, 2).interval().lower) == 12
        assert 0 <= estimate.independence(0, 2).p_value <= 1


def test_intervals_of_correlations_beyond_1_are_intervals() -> None:
    for value in (1.4, -1.4):
        low, high, _ = Correlation(value=value, stddev=0.1).interval()
        assert low == high == np.sign(value)


def test_parameters_that_break_a_rule() -> None:
    estimate = protocol(0).simulate(KINDS, np.full(len(KINDS), 100))
    wrong: list[Any] = [3, ([1, 2], None), (None, "ab"), ([1, 1, 1], None), ([1, 2, np.inf], None)]
    for scores in wrong:
        with pytest.raises(ParameterError, match="scores must be"):
            estimate.correlation(0, 1, scores=scores)
    with pytest.raises(ParameterError, match="attributes must"):
        estimate.independence(1, 0)
