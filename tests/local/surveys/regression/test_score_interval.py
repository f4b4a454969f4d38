"""Score tests and intervals: those of one proportion in each group, an exact size, coverage at 6 of 300."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import chdtrc, chdtri, expit, logit

from sfumato.local.surveys import Crosswise, ForcedResponse, TwoCoins, logistic_regression
from tests.cases import cases
from tests.chance import accepts_only, at_least, at_most

DIE = ForcedResponse(yes="1/6", no="1/6")


@cases("hits", [90, 60, 240])
def test_in_groups_the_interval_is_wilsons_of_each(hits: int) -> None:
    said, second = np.repeat([1, 0, 1, 0], (hits, 300 - hits, 150, 150)), np.repeat([0, 1], 300)
    fit = logistic_regression(DIE, said, {"second": second})
    found = fit.prediction_interval({"second": [0, 1]}, method="score")
    for index, yes in enumerate((hits, 150)):
        lower, upper, _ = DIE.estimate({"yes": yes, "no": 300 - yes}).interval(0.95, "wilson")
        assert (found.lower[index], found.upper[index]) == pytest.approx((lower, upper), abs=1e-6)
    lower, upper, _ = fit.interval("intercept", method="score")
    with np.errstate(divide="ignore"):
        wanted = logit(
            np.clip(DIE.estimate({"yes": hits, "no": 300 - hits}).interval(0.95, "wilson")[:2], 0, 1)
        )
    assert (lower, upper) == pytest.approx(tuple(wanted), rel=1e-4)


@cases("hits", [40, 260])
def test_an_estimate_beyond_wilsons_end_is_within_the_interval(hits: int) -> None:
    said, second = np.repeat([1, 0, 1, 0], (hits, 300 - hits, 150, 150)), np.repeat([0, 1], 300)
    fit = logistic_regression(DIE, said, {"second": second}, penalty="jeffreys")
    lower, upper, _ = fit.interval("intercept", method="score")
    assert lower <= fit.coefficients[0] + 1e-6
    assert fit.coefficients[0] <= upper + 1e-6
    assert np.isinf(lower if hits == 40 else upper)
    assert np.isfinite(upper if hits == 40 else lower)


@cases("design", [DIE, TwoCoins(), Crosswise(innocuous="1/5")])
def test_with_one_coefficient_the_statistic_is_the_standardized_count(design: ForcedResponse) -> None:
    # One coefficient has no others to estimate: the score is that of the binomial, at every value.
    n, hits, value = 40, 15, -0.4
    fit = logistic_regression(design, [1] * hits + [0] * (n - hits), np.ones((n, 1)), intercept=False)
    rate = design.yes_rate(float(expit(value)))
    wanted = (hits - n * rate) ** 2 / (n * rate * (1 - rate))
    found = fit.score_test("x1", value)
    assert found.statistic == pytest.approx(wanted, rel=1e-9)
    assert found.p_value == pytest.approx(chdtrc(1, wanted), rel=1e-8)
    assert found.degrees == 1


def _p_value(said: NDArray[np.int64], group: NDArray[np.int64]) -> float:
    fit = logistic_regression(DIE, said, {"group": group}, penalty="jeffreys")
    return fit.score_test("group").p_value


@pytest.mark.exhaustive
def test_the_size_of_the_test_by_all_answers() -> None:
    # Four in each of two groups, enumerated: the law of the p-value given the design, no draw.
    group = np.repeat([0, 1], 4)
    chances = [DIE.yes_rate(0.3)] * 2
    size = 0.0
    for first, second in itertools.product(range(5), repeat=2):
        said = np.concatenate([np.arange(4) < first, np.arange(4) < second]).astype(int)
        ways = [np.prod([(4 - k) / (k + 1) for k in range(hits)]) for hits in (first, second)]
        chance = np.prod(
            [w * p**h * (1 - p) ** (4 - h) for w, p, h in zip(ways, chances, (first, second), strict=True)]
        )
        p_value = _p_value(said, group)
        size += float(chance) * (p_value < 0.05)
    assert 0 < size < 0.06


def test_score_and_profile_agree_where_many_answered() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=3000)
    said = DIE.respond(rng.random(3000) < expit(0.6 * x - 0.5), rng=rng)
    fit = logistic_regression(DIE, said, {"x": x})
    one, two = fit.interval("x"), fit.interval("x", method="score")
    assert two[:2] == pytest.approx(one[:2], abs=0.02)
    for end in two[:2]:
        assert fit.score_test("x", end).p_value == pytest.approx(0.05, abs=1e-4)
    assert fit.score_test("x", 0.0).p_value == pytest.approx(fit.likelihood_ratio_test("x").p_value, abs=1e-3)


def test_a_level_next_to_0_is_the_estimate() -> None:
    x = np.arange(40.0) % 7
    fit = logistic_regression(DIE, [0, 1, 1, 0, 0] * 8, {"x": x})
    lower, upper, _ = fit.interval("x", 5e-324)
    assert lower == upper == pytest.approx(fit.coefficients[1])
    lower, upper, _ = fit.interval("x", 5e-324, method="score")
    assert lower == upper


def test_the_interval_spans_the_gaps_between_accepted_values() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=300)
    fit = logistic_regression(DIE, DIE.respond(rng.random(300) < expit(0.5 * x - 4), rng=rng), {"x": x})
    values = [-8.0, -4.0, -2.0, 0.0, 2.0, 8.0]
    accepted = [fit.score_test("x", value).p_value > 0.05 for value in values]
    assert accepted == [True, True, False, True, True, True]
    # Two coefficients, and the quantile at 1/50 of the risk: nothing is ruled out.
    assert max(fit.profile_deviance("x", value) for value in values) < chdtri(2, 0.001)
    assert fit.interval("x", method="score")[:2] == (-np.inf, np.inf)
    # The share of those with the trait is bounded all the same.
    assert fit.prediction_interval({"x": [0.0]}, method="score").upper[0] < 0.2


@pytest.mark.exhaustive
def test_it_holds_the_truth_at_6_of_300_as_often_as_it_says() -> None:
    rng, held, profile = np.random.default_rng(4), np.zeros(3, int), np.zeros(3, int)
    for _ in range(600):
        x, group = rng.normal(size=300), rng.random(300) < 0.5
        said = DIE.respond(rng.random(300) < expit(-4 + 0.5 * x - 0.3 * group), rng=rng)
        fit = logistic_regression(DIE, said, {"x": x, "group": group}, penalty="jeffreys")
        for index, (name, true) in enumerate(zip(fit.names, (-4, 0.5, -0.3), strict=True)):
            held[index] += fit.score_test(name, true).p_value >= 0.05
            profile[index] += fit.profile_deviance(name, true) <= 3.8414588
    accepts_only(at_least(int(held.min()), 600), 0.94, a_higher_level=0.99)
    accepts_only(at_most(int(held.max()), 600), 0.96, a_lower_level=0.89)
    assert profile[0] < held[0] - 20  # what the likelihood ratio leaves out there
