"""The checks of what is drawn: right laws pass at the stated rate, wrong ones and empty claims fail."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.chance import (
    FALSE_ALARM,
    _holds,
    accepts_only,
    at_least,
    at_most,
    frequencies,
    mean_at_most,
    moments,
    pearson,
    rate,
    unrefuted,
)


def test_a_test_of_chance_must_name_a_law_that_it_rejects() -> None:
    with pytest.raises(AssertionError, match="must name a law"):
        accepts_only(rate(5, 10), 0.5)
    accepts_only(rate(5, 10), 0.5, always=1.0)
    with pytest.raises(AssertionError, match="do not tell the right law from: near"):
        accepts_only(rate(5, 10), 0.5, always=1.0, near=0.6)
    with pytest.raises(AssertionError, match=r"'hits' came 5 times of 10, expected 9\.9"):
        accepts_only(rate(5, 10), 0.999999, far=1.0)


def test_counts_are_refused_exactly_where_their_tail_is_below_the_rate() -> None:
    total, chance, limit = 60, Fraction(3, 10), Fraction(FALSE_ALARM)
    law = [math.comb(total, k) * chance**k * (1 - chance) ** (total - k) for k in range(total + 1)]
    for hits in range(total + 1):
        below, above = sum(law[: hits + 1]), sum(law[hits:])
        assert _holds(at_least(hits, total), chance) == (below > limit)
        assert _holds(at_most(hits, total), chance) == (above > limit)
        assert _holds(rate(hits, total), chance) == (2 * min(below, above) > limit)
    for impossible in (rate(1, total), rate(total, total)):
        assert not _holds(impossible, 0)
    for impossible in (rate(0, total), rate(total - 1, total)):
        assert not _holds(impossible, 1)
    assert _holds(rate(0, total), 0)
    assert _holds(rate(total, total), 1)


def test_frequencies_compare_each_outcome_and_all_others_together() -> None:
    half = Fraction(1, 2)
    accepts_only(
        frequencies({"a": 500, "b": 499}),
        {"a": half, "b": half},
        rare={"a": 0.999, "b": 0.001},
        missing={"a": half, "b": 0.2, "c": 0.3},
    )
    check = frequencies({"a": 10**6, "never": 1})
    assert not _holds(check, {"a": 1, "never": 0})
    assert not _holds(check, {"a": 1})
    assert _holds(frequencies({"a": 500, "c": 500}), {"a": half})
    with pytest.raises(AssertionError, match="at most 1"):
        check({"a": 0.9, "never": 0.2})


def test_pearson_sees_many_small_differences_and_what_cannot_come() -> None:
    law = {k: Fraction(1, 50) for k in range(50)}
    tilted = {k: Fraction(4 + k % 2, 225) for k in range(50)}
    counts = {k: 298 + k % 5 for k in range(50)}
    accepts_only(pearson(counts), law, tilted=tilted)
    assert _holds(frequencies(counts), tilted)
    accepts_only(pearson({0: 100}), {0: 1, 1: 0}, never={0: 0, 1: 1}, even={0: 0.5, 1: 0.5})
    with pytest.raises(AssertionError, match="cannot come"):
        pearson({0: 1000, 1: 1})({0: 1})
    with pytest.raises(AssertionError, match="sum to 1"):
        pearson({0: 10})({0: 0.9})
    # Of outcomes that are rare, only how many came is compared.
    rare = {"often": 0.95} | dict.fromkeys(range(5), 0.01)
    accepts_only(
        pearson({"often": 95, 0: 5}), rare, sure={"often": 1.0, 0: 0.0}, rarely={"often": 0.5, 0: 0.5}
    )


def test_pearson_refuses_where_the_chi_square_law_says() -> None:
    """For two outcomes the statistic is the square of a normal number: 6.1 standard errors."""
    law, errors = {"a": 0.5, "b": 0.5}, 500.0
    for off, holds in ((6.05, True), (6.15, False)):
        assert (
            _holds(pearson({"a": 500_000 + round(off * errors), "b": 500_000 - round(off * errors)}), law)
            is holds
        )


def test_moments_compare_each_column() -> None:
    drawn = np.random.default_rng(1).normal([0.0, 5.0], [1.0, 3.0], (20_000, 2))
    accepts_only(
        moments(drawn),
        ([0, 5], [1, 9]),
        shifted=([0, 5.2], [1, 9]),
        wider=([0, 5], [1, 10]),
        narrower=([0, 5], [0.9, 9]),
    )
    laplace = np.random.default_rng(1).laplace(size=50_000)
    accepts_only(moments(laplace, kurtosis=6), (0, 2), half=(0, 1), tenth=(0.1, 2))


def test_a_mean_is_at_most_what_its_draws_allow() -> None:
    drawn = np.random.default_rng(2).exponential(2.0, 10_000)
    accepts_only(mean_at_most(drawn), 2.0, tenth_less=1.8)
    assert _holds(mean_at_most(drawn), 100.0)
    accepts_only(mean_at_most([1.0, 1.0]), 1, less=0.999)


def test_a_claim_is_refuted_by_what_is_proved() -> None:
    accepts_only(unrefuted(0.75), 0.75, below=0.7499)
