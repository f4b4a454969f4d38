"""Differences of several categories' shares: against those of two prevalences, and coverage by draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.surveys import (
    ForcedCategory,
    ForcedResponse,
    Kuk,
    MatrixDesign,
    PrevalenceDifference,
    SharesDifference,
    TwoCoins,
    stratified,
    weighted,
)
from tests.cases import cases
from tests.local.laws import covers

OFTEN = ForcedCategory(names=("never", "once", "often"), truth="3/5")
OTHER = ForcedCategory(names=("never", "once", "often"), truth="4/5")
ROWS = [["0.7", "0.2", "0.1"], ["0.1", "0.8", "0.1"], ["0.2", "0.1", "0.7"]]
ANY = MatrixDesign(names=("never", "once", "often"), said=(0, 1, 2), matrix=ROWS)


@cases("method", ["wilson", "clopper-pearson"])
def test_of_two_categories_it_is_the_difference_of_prevalences(method: Any) -> None:
    two = ForcedCategory(names=("no", "yes"), truth="2/3")  # the die of forced response
    die, counts = ForcedResponse(yes="1/6", no="1/6"), ({"yes": 130, "no": 170}, {"yes": 90, "no": 110})
    shares = SharesDifference(first=two.estimate(counts[0]), second=two.estimate(counts[1]))
    apart = PrevalenceDifference(first=die.estimate(counts[0]), second=die.estimate(counts[1]))
    assert shares.difference == pytest.approx([-apart.difference, apart.difference])
    assert shares.stddev == pytest.approx([apart.stddev] * 2)
    for simultaneous in (False, True):
        lower, upper, _ = shares.interval(0.9, method, simultaneous=simultaneous)
        assert (lower[1], upper[1]) == pytest.approx(apart.interval(0.9, method)[:2], abs=1e-9)
        assert (lower[0], upper[0]) == pytest.approx((-upper[1], -lower[1]), abs=1e-9)


def test_a_matrix_has_nearly_the_intervals_of_the_same_chances() -> None:
    same = MatrixDesign(names=OFTEN.categories, said=OFTEN.answers, matrix=OFTEN.transition)
    weeks = {"never": 500, "once": 300, "often": 200}, {"never": 460, "once": 310, "often": 230}
    one, two = (
        SharesDifference(first=design.estimate(weeks[0]), second=design.estimate(weeks[1]))
        for design in (OFTEN, same)
    )
    assert two.difference == pytest.approx(one.difference)
    assert two.covariance == pytest.approx(one.covariance, abs=1e-12)
    for simultaneous in (False, True):
        ends = [part.interval(simultaneous=simultaneous) for part in (one, two)]
        assert ends[1].lower == pytest.approx(ends[0].lower, abs=0.003)
        assert ends[1].upper == pytest.approx(ends[0].upper, abs=0.003)


def test_intervals_cover_each_and_at_once() -> None:
    designs, rng, runs = (OFTEN, OTHER), np.random.default_rng(7), 150
    truths = np.array([[1.0, 0.0, 0.0], [0.0, 0.3, 0.7]])
    each, at_once = np.zeros(3, int), 0
    for _ in range(runs):
        parts = []
        for design, truth in zip(designs, truths, strict=True):
            law = truth @ np.array(design.transition, dtype=float)
            parts.append(design.estimate(dict(zip(design.answers, rng.multinomial(600, law), strict=True))))
        found = SharesDifference(first=parts[0], second=parts[1])
        lower, upper, _ = found.interval(0.8)
        each += (lower <= truths[0] - truths[1]) & (truths[0] - truths[1] <= upper)
        lower, upper, _ = found.interval(0.8, simultaneous=True)
        at_once += bool(((lower <= truths[0] - truths[1]) & (truths[0] - truths[1] <= upper)).all())
    covers(each, runs, 0.8, claimed=0.98, most=0.8, under=0.5)
    covers(at_once, runs, 0.8, claimed=0.98, most=0.85, under=0.6)


def test_bad_input_is_refused_and_nobody_is_anywhere() -> None:
    one = OFTEN.estimate({"never": 300, "once": 150, "often": 50})
    nobody = OFTEN.estimate({})
    lower, upper, _ = SharesDifference(first=one, second=nobody).interval()
    assert (lower.tolist(), upper.tolist()) == ([-1.0] * 3, [1.0] * 3)
    any_matrix = ANY.estimate({0: 30, 1: 20, 2: 10})
    apart: Any = SharesDifference(first=one, second=any_matrix)
    with pytest.raises(ParameterError, match="method must be 'wilson' for MatrixShares"):
        apart.interval(method="clopper-pearson")
    with pytest.raises(ParameterError, match="method must be 'wilson' or 'clopper-pearson'"):
        apart.interval(method="wald")
    with pytest.raises(ParameterError, match="second must have the categories of first"):
        SharesDifference(
            first=one, second=Kuk(true="4/5", false="1/5").repeated(2).estimate({0: 3, 1: 2, 2: 1})
        )
    wrong: Any = TwoCoins().estimate({"yes": 4, "no": 6})
    with pytest.raises(ParameterError, match="first must be Shares or MatrixShares"):
        SharesDifference(first=wrong, second=one)


def test_weighted_and_stratified_samples_have_a_difference() -> None:
    coins = TwoCoins()
    said, weights = ["yes"] * 40 + ["no"] * 60, np.repeat([1.0, 2.0], 50)
    heavy, plain = weighted(coins, said, weights), coins.estimate({"yes": 30, "no": 70})
    found = PrevalenceDifference(first=heavy, second=plain)
    assert found.difference == heavy.prevalence - plain.prevalence
    assert found.stddev == pytest.approx(np.hypot(heavy.stddev, plain.stddev))
    lower, upper, _ = found.interval()
    assert lower < found.difference < upper
    with pytest.raises(ParameterError, match="method must be 'wald' for a weighted sample"):
        found.interval(method="clopper-pearson")
    # Of strata the guaranteed one is made of their exact intervals, not of the normal approximation.
    layers = stratified([plain, coins.estimate({"yes": 2, "no": 3})], [0.6, 0.4])
    exact = PrevalenceDifference(first=layers, second=plain).interval(0.9, "clopper-pearson")
    ends = [part.interval(0.95, "clopper-pearson") for part in (layers, plain)]
    assert exact[:2] == (ends[0].lower - ends[1].upper, ends[0].upper - ends[1].lower)
