"""The difference of two prevalences, in its intervals and in the tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.errors import ParameterError
from sfumato.local.surveys import (
    BinaryDesign,
    ForcedResponse,
    Prevalence,
    PrevalenceDifference,
    TwoCoins,
    Warner,
    goodness_of_fit,
    independence,
    two_sample,
)
from tests.cases import cases

DIE, WARNER = ForcedResponse(yes="1/6", no="1/6"), Warner(truth="1/5")
METHODS: tuple[Any, ...] = ("wilson", "clopper-pearson")


def coverage(designs: Any, sizes: Any, thetas: Any, method: Any, level: float = 0.8) -> float:
    """The chance that an interval holds the true difference, over all pairs of counts."""
    masses, ranges = [], []
    for design, n, theta in zip(designs, sizes, thetas, strict=True):
        law = np.asarray(binom.pmf(np.arange(n + 1), n, design.yes_rate(theta)))
        masses.append(law)
        ranges.append([Prevalence(design=design, yes=yes, respondents=n) for yes in range(n + 1)])
    held = 0.0
    for i, one in enumerate(ranges[0]):
        for j, two in enumerate(ranges[1]):
            mass = masses[0][i] * masses[1][j]
            if mass > 1e-6:
                lower, upper, _ = PrevalenceDifference(first=one, second=two).interval(level, method)
                held += mass * (lower - 1e-12 <= thetas[0] - thetas[1] <= upper + 1e-12)
    return held


@cases("thetas", [(0.3, 0.3), (0.5, 0.2), (0.2, 0.7)])
def test_intervals_cover_by_enumeration(thetas: tuple[float, float]) -> None:
    for designs in ((DIE, DIE), (DIE, WARNER)):
        wilson, exact = (coverage(designs, (40, 30), thetas, method) for method in METHODS)
        assert 0.76 < wilson < 0.86
        assert exact >= 0.8


@cases("thetas", [(0.0, 1.0), (0.0, 0.1), (1.0, 0.4), (0.0, 0.0)])
def test_intervals_cover_where_estimates_fall_outside(thetas: tuple[float, float]) -> None:
    """Cut off at 0 and 1 before they are put together they cover in .71 and .91 of the surveys."""
    assert 0.94 < coverage((DIE, DIE), (25, 60), thetas, "wilson", 0.95) < 0.98


def test_a_difference_is_that_of_the_estimates() -> None:
    one, two = DIE.estimate({"yes": 40, "no": 60}), WARNER.estimate({"yes": 30, "no": 170})
    found = PrevalenceDifference(first=one, second=two)
    assert found.difference == one.prevalence - two.prevalence
    assert found.stddev == pytest.approx(math.sqrt(one.variance + two.variance))
    assert found.maximum_likelihood == one.maximum_likelihood - 1
    turned = PrevalenceDifference(first=two, second=one)
    for method in METHODS:
        lower, upper, _ = found.interval(0.9, method)
        assert -1 <= lower <= found.maximum_likelihood <= upper <= 1
        assert turned.interval(0.9, method)[:2] == pytest.approx((-upper, -lower))
    empty = PrevalenceDifference(first=one, second=DIE.estimate([]))
    assert math.isnan(empty.difference)
    assert empty.interval()[:2] == (-1.0, 1.0)
    wrong: Any = "wald"
    for bad in ({"method": wrong}, {"level": 1.0}):
        with pytest.raises(ParameterError):
            found.interval(**bad)
    with pytest.raises(ParameterError, match="second must be an estimated prevalence"):
        PrevalenceDifference(first=one, second=wrong)


def test_every_test_shows_the_difference_of_its_prevalences() -> None:
    one, two = (TwoCoins().estimate({"yes": yes, "no": 200 - yes}) for yes in (90, 70))
    apart = PrevalenceDifference(first=one, second=two)
    for found in (two_sample(one, two), two_sample(one, DIE.estimate({"yes": 60, "no": 140}))):
        assert found.interval is not None
        assert found.difference is not None
        assert found.interval.lower < found.difference < found.interval.upper
    assert two_sample(one, two).difference == pytest.approx(0.2)
    assert two_sample(one, two).interval == apart.interval()
    fit = goodness_of_fit(one, 0.3)
    assert fit.difference == pytest.approx(0.1)
    assert fit.interval is not None
    assert fit.interval[:2] == pytest.approx(np.subtract(one.interval(0.95, "wilson")[:2], 0.3))
    answers, groups = [1] * 90 + [0] * 110 + [1] * 70 + [0] * 130, ["town"] * 200 + ["country"] * 200
    methods: tuple[Any, ...] = ("chi-square", "permuted")
    for method in methods:
        split = independence(answers, groups, designs=(TwoCoins(), None), method=method)
        assert (split.difference, split.interval) == (apart.difference, apart.interval())
        turned = independence(groups, answers, designs=(None, TwoCoins()), method=method)
        assert (turned.difference, turned.interval) == (apart.difference, apart.interval())
        assert turned.method == f"chi-square, {'permuted' if method == 'permuted' else 'approximate'}"
    design: BinaryDesign = TwoCoins()
    both = independence(answers, answers, designs=(design, design))
    assert both.difference is None
    assert both.interval is None
