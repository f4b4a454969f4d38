"""Plans: their numbers against the intervals and tests that they plan for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from sfumato.errors import ParameterError
from sfumato.local.surveys import (
    BinaryDesign,
    ForcedCategory,
    ForcedResponse,
    Prevalence,
    TwoCoins,
    UnrelatedQuestionTwoSamples,
    Warner,
    goodness_of_fit,
    power,
    power_between,
    respondents_between,
    respondents_for_margin,
    respondents_to_tell,
    samples_for_margin,
    two_sample,
)
from sfumato.local.surveys.estimates.intervals import Method
from tests.cases import cases
from tests.local.surveys.catalogue import BINARY

TWO = cases("design", BINARY.values(), ids=BINARY)


def widest(design: BinaryDesign, n: int) -> float:
    """Half of the widest interval, before it is cut off at 0 and 1."""
    slope, ends = abs(float(design.slope)), []
    for yes in range(n + 1):
        # A design without randomization to speak of has the interval of the answers themselves.
        plain = ForcedResponse(yes="1/1000000000", no="1/1000000000")
        lower, upper, _ = Prevalence(design=plain, yes=yes, respondents=n).interval()
        ends.append((upper - lower) / 2 / slope)
    return max(ends)


@pytest.mark.parametrize("margin", [0.2, 0.11])
def test_a_margin_is_met_whatever_is_answered(margin: float) -> None:
    design = BINARY["forced by a die"]
    plan = respondents_for_margin(design, margin)
    assert plan.exact
    assert widest(design, plan.respondents) <= margin + 1e-6
    assert widest(design, plan.respondents - 1) > margin - 1e-6
    assert plan.achieved == pytest.approx(widest(design, plan.respondents), abs=1e-6)


@TWO
def test_smaller_margins_need_more(design: BinaryDesign) -> None:
    found = [respondents_for_margin(design, margin).respondents for margin in (0.2, 0.1, 0.05, 0.01)]
    assert found == sorted(found)
    assert respondents_for_margin(design, 0.05, method="wald").respondents < found[2]


@TWO
@cases("two_sided", [True, False])
def test_power_is_that_of_the_exact_test(design: BinaryDesign, two_sided: bool) -> None:
    for n in (1, 7, 60):
        for null, true in ((0.1, 0.4), (0.6, 0.5), (0.0, 1.0)):
            law = binom.pmf(np.arange(n + 1), n, design.yes_rate(true))
            rejected = []
            for yes in range(n + 1):
                found = goodness_of_fit(Prevalence(design=design, yes=yes, respondents=n), null)
                if two_sided:
                    rejected.append(found.p_value <= 0.05)
                    continue
                higher = design.yes_rate(true) > design.yes_rate(null)
                rate = design.yes_rate(null)
                tail = binom.sf(yes - 1, n, rate) if higher else binom.cdf(yes, n, rate)
                rejected.append(tail <= 0.05)
            found_power = power(design, null=null, prevalence=true, respondents=n, two_sided=two_sided)
            assert found_power == pytest.approx(float(law @ rejected), abs=1e-9)


@pytest.mark.parametrize(("null", "true"), [(0.1, 0.2), (0.5, 0.4), (0.0, 0.9), (0.02, 0.05)])
def test_planned_respondents_are_the_least_that_do(null: float, true: float) -> None:
    for design in (TwoCoins(), Warner(truth="1/5")):
        plan = respondents_to_tell(design, null=null, prevalence=true, power=0.9)
        powers = [
            power(design, null=null, prevalence=true, respondents=plan.respondents + more)
            for more in range(-1, 21)
            if plan.respondents + more > 0
        ]
        assert plan.achieved == powers[-21]
        assert min(powers[-21:]) >= 0.9
        assert len(powers) == 21 or powers[0] < 0.9


def test_many_respondents_are_planned_at_once() -> None:
    plan = respondents_to_tell(TwoCoins(), null=0.1, prevalence=0.101, power=0.8)
    rate = TwoCoins().yes_rate(0.1)
    normal = (1.959964 + 0.841621) ** 2 * rate * (1 - rate) / 0.0005**2
    assert plan.respondents == pytest.approx(normal, rel=2e-3)


def test_power_between_two_groups_is_that_of_fishers_test() -> None:
    design, n = TwoCoins(), 25
    laws = [binom.pmf(np.arange(n + 1), n, design.yes_rate(theta)) for theta in (0.05, 0.9)]
    groups = [Prevalence(design=design, yes=yes, respondents=n) for yes in range(n + 1)]
    rejected = [[two_sample(one, two).p_value <= 0.05 for two in groups] for one in groups]
    plan = power_between(design, first=0.05, second=0.9, respondents=n)
    assert plan.achieved == pytest.approx(float(laws[0] @ np.array(rejected) @ laws[1]), abs=1e-9)
    assert plan.exact


def test_groups_have_the_least_size_that_tells_them_apart() -> None:
    design = TwoCoins()
    plan = respondents_between(design, first=0.1, second=0.5, power=0.8)
    assert (
        plan.achieved
        >= 0.8
        > power_between(design, first=0.1, second=0.5, respondents=plan.respondents - 1).achieved
    )
    large = respondents_between(design, first=0.10, second=0.13, power=0.8)
    assert not large.exact
    assert large.achieved >= 0.8


def test_the_approximation_goes_on_where_the_exact_power_ends() -> None:
    exact = power_between(TwoCoins(), first=0.1, second=0.19, respondents=2000)
    beyond = power_between(TwoCoins(), first=0.1, second=0.19, respondents=2001)
    assert (exact.exact, beyond.exact) == (True, False)
    assert beyond.achieved == pytest.approx(exact.achieved, abs=0.01)


def test_the_design_effect_is_the_price_in_respondents() -> None:
    design = TwoCoins()
    assert design.design_effect(0.2) == pytest.approx(0.35 * 0.65 / 0.25 / (0.2 * 0.8))


@cases(
    "call",
    [
        lambda: respondents_for_margin(TwoCoins(), 0.5),
        lambda: respondents_for_margin(TwoCoins(), 1e-9),
        lambda: respondents_to_tell(TwoCoins(), null=0.1, prevalence=0.1),
        lambda: respondents_to_tell(TwoCoins(), null=0.1, prevalence=0.1 + 1e-9),
        lambda: respondents_to_tell(TwoCoins(), null=0.1, prevalence=1.1),
        lambda: respondents_between(TwoCoins(), first=0.1, second=0.1),
        lambda: power(TwoCoins(), null=0.1, prevalence=0.2, respondents=0),
        lambda: power(TwoCoins(), null=0.1, prevalence=0.2, respondents=9, false_positive_rate=0),
    ],
)
def test_plans_that_cannot_be_made_are_refused(call: Any) -> None:
    with pytest.raises(ParameterError, match=" must "):
        call()


def test_plans_are_of_one_sample_and_powers_of_two_answers() -> None:
    apart = UnrelatedQuestionTwoSamples(first="7/10", second="3/10", between=("1/4", "3/4"))
    with pytest.raises(
        ParameterError, match=r"design must be a Design, got a value of type Unrelated.*; samples_for"
    ):
        respondents_for_margin(apart, 0.05)  # type: ignore[arg-type]
    several: Any = ForcedCategory(names=("a", "b", "c"), truth="1/2")
    with pytest.raises(
        ParameterError, match=r"design must be a BinaryDesign, got a value of type ForcedCategory; chi_square"
    ):
        power(several, null=0.1, prevalence=0.2, respondents=100)
    with pytest.raises(
        ParameterError, match=r"design must be an UnrelatedQuestionTwoSamples, got a value of type TwoCoins"
    ):
        samples_for_margin(TwoCoins(), 0.05)  # type: ignore[arg-type]
    wrongs: list[Any] = [{"margin": 0.5}, {"margin": 1e-9}, {"margin": 0.1, "level": 1}]
    for wrong in wrongs:
        with pytest.raises(ParameterError, match=" must "):
            samples_for_margin(apart, **wrong)
    with pytest.raises(ParameterError, match="method must be 'clopper-pearson' or 'wald', got 'wilson'"):
        samples_for_margin(apart, 0.1, method="wilson")


@pytest.mark.parametrize("chances", [("7/10", "3/10"), ("1/10", "8/10")])
def test_two_samples_meet_a_margin_whatever_is_answered(chances: tuple[str, str]) -> None:
    design = UnrelatedQuestionTwoSamples(first=chances[0], second=chances[1], between=("1/4", "3/4"))
    ends = np.array([float(weight) for weight in design.weights])
    methods: tuple[Method, ...] = ("clopper-pearson", "wald")
    for method in methods:
        plan = samples_for_margin(design, 0.2, method=method)
        assert plan.exact == (method == "clopper-pearson")
        first, second = plan.respondents
        halves = []
        for yes in range(0, first + 1, 3):
            answers = [[yes, first - yes], [second // 2, second - second // 2]]
            found = design.estimate(*({"yes": a, "no": b} for a, b in answers))
            lower, upper = found.ends(0.05, method)
            halves.append((upper - lower) / 2)
        assert max(halves) <= plan.achieved * (1 + 1e-9) <= 0.2 * (1 + 1e-9)
        shares = abs(ends) ** (1 if method == "wald" else 2 / 3)
        fewer = [int(np.ceil((first + second - 4) * share)) for share in shares / shares.sum()]
        assert design.half_width((fewer[0], fewer[1]), 0.95, method) > 0.2
        # No other split of as many has a narrower interval.
        splits = [(n, first + second - n) for n in range(5, first + second - 5, 7)]
        assert min(design.half_width(one, 0.95, method) for one in splits) >= plan.achieved * 0.995


def test_of_many_respondents_none_of_the_next_thrice_the_root_misses() -> None:
    asked: dict[str, Any] = {"null": 0.5, "prevalence": 0.475, "two_sided": False}
    plan = respondents_to_tell(TwoCoins(), power=0.5, **asked)
    after = [
        power(TwoCoins(), respondents=plan.respondents + more, **asked)
        for more in range(-1, round(3 * plan.respondents**0.5))
    ]
    assert after[0] < 0.5 <= min(after[1:])


def test_the_published_example_of_the_package_rr() -> None:
    """Blair, Imai, Zhou (2015): 200 respondents, a die, a prevalence of .2 against 0, one-sided at .01."""
    die = ForcedResponse(yes="1/6", no="1/6")
    null, true = die.yes_rate(0.0), die.yes_rate(0.2)
    errors = [np.sqrt(rate * (1 - rate) / 200) for rate in (null, true)]
    published = 0.9868872
    assert ndtr((true - null - ndtri(0.99) * errors[0]) / errors[1]) == pytest.approx(published, abs=5e-8)
    # Ours is a sum of binomial probabilities, not the normal approximation.
    options: Any = {"null": 0.0, "prevalence": 0.2, "false_positive_rate": 0.01, "two_sided": False}
    exact = power(die, respondents=200, **options)
    least = int(np.argmax(binom.sf(np.arange(200), 200, null) <= 0.01)) + 1
    assert exact == pytest.approx(float(binom.sf(least - 1, 200, true)), rel=1e-9)
    assert exact == pytest.approx(published, abs=0.01)
    plan = respondents_to_tell(die, power=published, **options)
    assert plan.respondents == pytest.approx(200, rel=0.1)
