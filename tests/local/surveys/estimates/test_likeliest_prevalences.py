"""Estimates within [0, 1] and intervals of every kind of estimate: grids, other intervals, coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import xlogy

from sfumato.errors import ParameterError
from sfumato.local.surveys import (
    ForcedResponse,
    MatrixDesign,
    PrevalenceDifference,
    TwoCoins,
    UnrelatedQuestionTwoSamples,
    stratified,
    weighted,
)
from tests.cases import cases
from tests.local.laws import covers

DIE, COINS = ForcedResponse(yes="1/6", no="1/6"), TwoCoins()
APART = UnrelatedQuestionTwoSamples(first="7/10", second="3/10", between=("1/4", "3/4"))
MATRIX = MatrixDesign(
    names=("never", "once", "often"),
    said=("never", "once", "often"),
    matrix=[["0.8", "0.1", "0.1"], ["0.2", "0.6", "0.2"], ["0.1", "0.2", "0.7"]],
)


@cases("yes", [(290, 410), (40, 410), (300, 20), (980, 700), (10, 5)])
def test_two_samples_have_the_likeliest_of_a_grid(yes: tuple[int, int]) -> None:
    found = APART.estimate(*({"yes": hits, "no": 1000 - hits} for hits in yes))
    grid = np.linspace(0, 1, 501)
    sensitive, harmless = np.meshgrid(grid, grid, indexing="ij")
    height = np.zeros_like(sensitive)
    for p, hits in zip((0.7, 0.3), yes, strict=True):
        rate = p * sensitive + (1 - p) * harmless
        height += xlogy(hits, rate) + xlogy(1000 - hits, 1 - rate)
    assert found.maximum_likelihood == pytest.approx(sensitive.ravel()[np.argmax(height)], abs=2e-3)
    if 0 <= found.prevalence <= 1 and 0 <= found.innocuous <= 1:
        assert found.maximum_likelihood == pytest.approx(found.prevalence, abs=1e-6)


def test_strata_and_weights_stay_within_the_range() -> None:
    low, high = COINS.estimate({"yes": 10, "no": 90}), COINS.estimate({"yes": 40, "no": 60})
    whole = stratified([low, high], [0.5, 0.5])
    assert whole.maximum_likelihood == pytest.approx((0 + 0.3) / 2)
    assert whole.prevalence < whole.maximum_likelihood
    assert weighted(COINS, [0] * 20, [1.0] * 20).maximum_likelihood == 0.0
    assert math.isnan(weighted(COINS, [0], [1.0]).maximum_likelihood)
    assert math.isnan(APART.estimate([], [0, 1]).maximum_likelihood)


def test_differences_of_all_kinds_of_prevalences() -> None:
    single = COINS.estimate({"yes": 400, "no": 600})
    two = APART.estimate({"yes": 290, "no": 710}, {"yes": 410, "no": 590})
    whole = stratified([single, DIE.estimate({"yes": 300, "no": 700})], [0.5, 0.5])
    for first, second in ((single, two), (two, whole), (whole, single)):
        apart = PrevalenceDifference(first=first, second=second)
        assert apart.difference == pytest.approx(first.prevalence - second.prevalence)
        near, exact = apart.interval(), apart.interval(0.95, "clopper-pearson")
        assert exact.lower < near.lower < apart.difference < near.upper < exact.upper
        assert (near.upper - near.lower) / 2 == pytest.approx(1.96 * apart.stddev, rel=0.05)
    empty = PrevalenceDifference(first=APART.estimate([], [0, 1]), second=single)
    assert empty.interval()[:2] == (-1.0, 1.0)
    with pytest.raises(ParameterError, match="first must be an estimated prevalence"):
        PrevalenceDifference(first=0.3, second=single)  # type: ignore[arg-type]


def test_a_matrix_of_two_answers_has_the_interval_of_the_prevalence() -> None:
    coins = MatrixDesign(names=(0, 1), said=(0, 1), matrix=[["3/4", "1/4"], ["1/4", "3/4"]])
    found = coins.estimate([1] * 400 + [0] * 600).interval()
    assert found.lower[1] == pytest.approx(1 - found.upper[0], abs=1e-8)
    # The ends are where twice the fall of the binomial likelihood is the quantile.
    for end in (found.lower[1], found.upper[1]):
        rate = 0.25 + end / 2
        fall = 400 * math.log(0.4 / rate) + 600 * math.log(0.6 / (1 - rate))
        assert 2 * fall == pytest.approx(3.8414588, abs=1e-5)
    assert MATRIX.estimate([]).interval().upper.tolist() == [1.0] * 3
    edge = MATRIX.estimate({"never": 800, "once": 100, "often": 100}).interval()
    assert edge.lower[1] == 0.0


@pytest.mark.exhaustive
def test_intervals_of_a_matrix_cover() -> None:
    rng, runs, held = np.random.default_rng(0), 150, np.zeros(3, int)
    shares = np.array([0.7, 0.2, 0.1])
    for _ in range(runs):
        truth = np.array(MATRIX.categories)[rng.choice(3, size=500, p=shares)]
        found = MATRIX.estimate(MATRIX.respond(truth, rng=rng)).interval()
        held += (found.lower <= shares) & (shares <= found.upper)
    covers(held, runs, 0.94, claimed=0.998)
