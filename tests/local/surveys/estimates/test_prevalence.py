"""Estimates: unbiased by enumeration, intervals that cover by exact sums."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, multinomial

from sfumato.errors import ParameterError
from sfumato.local.surveys import (
    BinaryDesign,
    ForcedCategory,
    ForcedResponse,
    Prevalence,
    Shares,
    TwoCoins,
    UnrelatedQuestionTwoSamples,
    Warner,
    stratified,
    weighted,
)
from tests.cases import cases
from tests.chance import accepts_only
from tests.local.laws import SEVEN_SIGMA, covers, within
from tests.local.surveys.catalogue import BINARY

TWO = cases("design", BINARY.values(), ids=BINARY)


def outcomes(design: BinaryDesign, n: int) -> list[Prevalence]:
    return [Prevalence(design=design, yes=yes, respondents=n) for yes in range(n + 1)]


@TWO
@cases("theta", [0.0, 0.15, 0.8, 1.0])
def test_estimates_and_their_variances_are_unbiased(design: BinaryDesign, theta: float) -> None:
    n = 25
    law = binom.pmf(np.arange(n + 1), n, design.yes_rate(theta))
    found = outcomes(design, n)
    assert law @ [each.prevalence for each in found] == pytest.approx(theta, abs=1e-12)
    spread = law @ [(each.prevalence - theta) ** 2 for each in found]
    assert spread == pytest.approx(design.variance(n, theta), rel=1e-12)
    assert law @ [each.variance for each in found] == pytest.approx(spread, rel=1e-12)


def coverage(design: BinaryDesign, n: int, theta: float, level: float, method: Any) -> float:
    law = binom.pmf(np.arange(n + 1), n, design.yes_rate(theta))
    kept = np.flatnonzero(law > 1e-13)
    covers = [
        lower - 1e-12 <= theta <= upper + 1e-12
        for lower, upper, _ in (
            Prevalence(design=design, yes=int(yes), respondents=n).interval(level, method) for yes in kept
        )
    ]
    return float(law[kept] @ covers)


@TWO
@cases("n", [3, 40])
def test_exact_intervals_always_cover(design: BinaryDesign, n: int) -> None:
    for theta in np.linspace(0, 1, 21):
        assert coverage(design, n, float(theta), 0.9, "clopper-pearson") >= 0.9 - 1e-9


def test_for_many_respondents_coverage_is_what_was_asked_for() -> None:
    for design in (TwoCoins(), ForcedResponse(yes="1/6", no="1/6"), Warner(truth="3/10")):
        thetas = np.linspace(0.03, 0.97, 5)
        for method, least, most in (
            ("clopper-pearson", 0.95, 0.96),
            ("wilson", 0.94, 0.96),
            ("wald", 0.94, 0.96),
        ):
            found = [coverage(design, 3000, float(theta), 0.95, method) for theta in thetas]
            assert least <= np.mean(found) <= most
            assert min(found) > 0.94


def test_wald_intervals_are_too_narrow_for_few() -> None:
    assert coverage(ForcedResponse(yes="1/20", no="1/20"), 20, 0.02, 0.95, "wald") < 0.9
    assert coverage(ForcedResponse(yes="1/20", no="1/20"), 20, 0.02, 0.95, "wilson") > 0.9


@TWO
def test_intervals_hold_the_estimate_and_stay_within_0_and_1(design: BinaryDesign) -> None:
    for found in outcomes(design, 30):
        for method in ("clopper-pearson", "wilson", "wald"):
            lower, upper, _ = found.interval(0.9, method)
            assert 0 <= lower <= upper <= 1
            assert lower <= min(1, max(0, found.prevalence)) <= upper


def test_no_answers_tell_nothing() -> None:
    found = TwoCoins().estimate([])
    assert np.isnan(found.prevalence)
    assert np.isnan(found.stddev)
    assert found.misfit == 1
    assert found.interval() == (0.0, 1.0, True)
    shares = ForcedCategory(names=("a", "b"), truth="1/2").estimate([])
    assert np.isnan(shares.shares).all()
    assert shares.interval().upper.tolist() == [1.0, 1.0]


def test_raw_estimates_leave_the_range_and_too_far_is_a_misfit() -> None:
    found = TwoCoins().estimate({"yes": 150, "no": 850})
    assert found.prevalence == -0.2
    assert found.interval() == (0.0, 0.0, True)
    assert found.misfit < 1e-12
    assert TwoCoins().estimate({"yes": 245, "no": 755}).misfit > 0.5
    assert Warner(truth="1/5").estimate({"yes": 900, "no": 100}).misfit < 1e-9


def test_a_misfit_is_a_p_value_where_instructions_are_followed() -> None:
    for theta in (0.0, 0.3, 1.0):
        law = binom.pmf(np.arange(201), 200, TwoCoins().yes_rate(theta))
        for risk in (0.01, 0.1):
            rejected = [each.misfit <= risk for each in outcomes(TwoCoins(), 200)]
            assert law @ rejected <= risk


@pytest.mark.parametrize("arguments", [{"level": 1.0}, {"level": 0}, {"method": "exact"}])
def test_levels_and_methods_are_checked(arguments: dict[str, Any]) -> None:
    for found in (TwoCoins().estimate([]), TwoCoins().estimate([1, 0])):
        with pytest.raises(ParameterError):
            found.interval(**arguments)


def test_several_categories_are_unbiased_and_so_are_their_covariances() -> None:
    design = ForcedCategory(names=("a", "b", "c"), truth="2/5", forced=("1/2", "1/4", "1/4"))
    theta, n = np.array([0.7, 0.25, 0.05]), 7
    rates = theta @ np.array([[float(mass) for mass in row] for row in design.transition])
    mean, spread, stated = np.zeros(3), np.zeros((3, 3)), np.zeros((3, 3))
    for counts in product(range(n + 1), repeat=3):
        if sum(counts) != n:
            continue
        mass = multinomial.pmf(counts, n, rates)
        found = design.estimate(dict(zip("abc", counts, strict=True)))
        mean += mass * found.shares
        spread += mass * np.outer(found.shares - theta, found.shares - theta)
        stated += mass * found.covariance
    np.testing.assert_allclose(mean, theta, atol=1e-12)
    np.testing.assert_allclose(stated, spread, atol=1e-12)


def test_each_category_has_the_interval_of_its_own_count() -> None:
    design = ForcedCategory(names=("a", "b", "c"), truth="2/5", forced=("1/2", "1/4", "1/4"))
    found = design.estimate({"a": 60, "b": 25, "c": 15})
    lower, upper, _ = found.interval(0.9)
    assert (lower <= np.clip(found.shares, 0, 1)).all()
    assert (np.clip(found.shares, 0, 1) <= upper).all()
    # "b" against the rest is a forced response with the same chances.
    beside = ForcedResponse(yes="3/20", no="9/20").estimate({"yes": 25, "no": 75}).interval(0.9)
    assert (lower[1], upper[1]) == pytest.approx(beside[:2], abs=1e-12)


def test_two_samples_give_both_prevalences() -> None:
    design = UnrelatedQuestionTwoSamples(first="4/5", second="3/10", between=("1/4", "3/4"))
    theta, pi, sizes = 0.2, 0.6, (20, 15)
    rates = 0.8 * theta + 0.2 * pi, 0.3 * theta + 0.7 * pi
    laws = [binom.pmf(np.arange(n + 1), n, rate) for n, rate in zip(sizes, rates, strict=True)]
    mean = other = spread = stated = covered = 0.0
    for first, second in product(range(21), range(16)):
        mass = laws[0][first] * laws[1][second]
        found = design.estimate({"yes": first, "no": 20 - first}, {"yes": second, "no": 15 - second})
        mean += mass * found.prevalence
        other += mass * found.innocuous
        spread += mass * (found.prevalence - theta) ** 2
        stated += mass * found.variance
        lower, upper, _ = found.interval(0.9)
        covered += mass * (lower <= theta <= upper)
        wide = found.interval(0.9, "wald")
        assert 0 <= wide.lower <= wide.upper <= 1
    assert (mean, other, stated) == pytest.approx((theta, pi, spread), rel=1e-9)
    assert covered >= 0.9


def test_strata_add_up_with_their_shares() -> None:
    town = TwoCoins().estimate({"yes": 400, "no": 600})
    country = Warner(truth="7/10").estimate({"yes": 350, "no": 650})
    whole = stratified([town, country], [0.75, 0.25])
    assert whole.prevalence == pytest.approx(0.75 * 0.3 + 0.25 * 0.125)
    assert whole.variance == pytest.approx(0.75**2 * town.variance + 0.25**2 * country.variance)
    lower, upper, _ = whole.interval()
    assert lower < whole.prevalence < upper
    exact = whole.interval(method="clopper-pearson")
    assert exact.lower < lower < upper < exact.upper
    with pytest.raises(ParameterError, match="add up to 1"):
        stratified([town, country], [0.75, 0.75])


def test_strata_cover_by_enumeration() -> None:
    designs, shares, thetas, n = (TwoCoins(), Warner(truth="4/5")), (0.6, 0.4), (0.1, 0.7), 30
    laws = [binom.pmf(np.arange(n + 1), n, d.yes_rate(t)) for d, t in zip(designs, thetas, strict=True)]
    truth, covered = 0.6 * 0.1 + 0.4 * 0.7, 0.0
    for yes in product(range(n + 1), repeat=2):
        mass = laws[0][yes[0]] * laws[1][yes[1]]
        if mass > 1e-8:
            parts = [Prevalence(design=d, yes=y, respondents=n) for d, y in zip(designs, yes, strict=True)]
            lower, upper, _ = stratified(parts, shares).interval(0.8, "clopper-pearson")
            covered += mass * (lower <= truth <= upper)
    assert covered >= 0.8


def test_equal_weights_change_nothing() -> None:
    answers = [1] * 30 + [0] * 70
    plain, even = TwoCoins().estimate(answers), weighted(TwoCoins(), answers, [2.5] * 100)
    assert even.prevalence == pytest.approx(plain.prevalence)
    assert even.stddev == pytest.approx(plain.stddev)
    assert even.effective == pytest.approx(100)


def test_weights_undo_an_uneven_sample() -> None:
    """Of 100,000 people those of whom it is true came ten times as often into 2,000 samples."""
    rng, design, estimates, stated, covered = np.random.default_rng(5), TwoCoins(), [], [], 0
    for _ in range(2000):
        true = np.repeat([True, False], [rng.poisson(300), rng.poisson(270)])
        weights = np.where(true, 1.0, 10.0)
        found = weighted(design, design.respond(true, rng=rng), weights)
        estimates.append(found.prevalence)
        stated.append(found.stddev)
        lower, upper, _ = found.interval()
        covered += lower <= 0.1 <= upper
    # The ratio of Poisson counts is biased by less than a thousandth; six standard errors otherwise.
    mean = within(np.mean(estimates), np.std(estimates) / np.sqrt(2000) + 1e-3 / SEVEN_SIGMA)
    accepts_only(mean, 0.1, unweighted=300 / 570, weights_swapped=300 / 327)

    def check(stddev: float) -> None:
        assert stddev == pytest.approx(np.std(estimates), rel=0.1)

    told = float(np.mean(stated))
    accepts_only(check, told, a_fifth_less=0.8 * told, a_fifth_more=1.2 * told)
    assert covered > 0.92 * 2000
    covers(covered, 2000)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [1.0, float("nan")], [0.0, 1.0]])
def test_other_weights_are_refused(weights: list[float]) -> None:
    with pytest.raises(ParameterError, match="weights must be"):
        weighted(TwoCoins(), [1, 0], weights)


def test_weights_of_answers_that_are_all_alike_leave_the_devices_error() -> None:
    for said in ("yes", "no"):
        found = weighted(TwoCoins(), [said] * 40, np.linspace(1, 3, 40))
        # An answer has the variance 3/16, four times that for the truth, over the effective respondents.
        assert found.stddev == pytest.approx(np.sqrt(3 / 16 * 4 / found.effective))


def test_where_nobody_answered_every_share_is_possible() -> None:
    design = ForcedCategory(names=("never", "once", "often"), truth="3/5")
    methods: tuple[Any, ...] = ("clopper-pearson", "wilson", "wald")
    for method in methods:
        lower, upper, _ = Shares(design=design, counts=np.zeros(3, np.int64)).interval(0.95, method)
        assert (lower.tolist(), upper.tolist()) == ([0, 0, 0], [1, 1, 1])
