"""Tests on randomized answers: their sizes, exactly or by simulation, and their power."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, binomtest, chi2_contingency, chisquare, hypergeom

from sfumato.errors import ParameterError
from sfumato.local.surveys import (
    BinaryDesign,
    Crosswise,
    Design,
    ForcedCategory,
    ForcedResponse,
    Prevalence,
    Shares,
    TwoCoins,
    Warner,
    chi_square_power,
    goodness_of_fit,
    independence,
    two_sample,
)
from tests.cases import cases
from tests.chance import accepts_only, at_least, at_most
from tests.local.laws import SEVEN_SIGMA, within
from tests.local.surveys.catalogue import BINARY

TWO = cases("design", BINARY.values(), ids=BINARY)
THREE = ForcedCategory(names=("never", "once", "often"), truth="3/5")
SHARES = np.array([0.8, 0.15, 0.05])


def near(hits: int, total: int, off: float) -> Callable[[float], None]:
    """A check of a rate that a limit law tells but for so much."""

    def check(chance: float) -> None:
        at_least(hits, total)(max(chance - off, 0.0))
        at_most(hits, total)(min(max(chance + off, 0.0), 1.0))

    return check


def transition(design: Design) -> Any:
    return np.array([[float(mass) for mass in row] for row in design.transition])


def prevalence(design: BinaryDesign, yes: int, n: int) -> Prevalence:
    return Prevalence(design=design, yes=yes, respondents=n)


@TWO
@cases("theta", [0.0, 0.1, 0.5, 1.0])
def test_the_binomial_test_errs_at_most_as_often_as_it_says(design: BinaryDesign, theta: float) -> None:
    law = binom.pmf(np.arange(61), 60, design.yes_rate(theta))
    values = [goodness_of_fit(prevalence(design, yes, 60), theta).p_value for yes in range(61)]
    for risk in (0.01, 0.05, 0.3):
        assert law @ (np.array(values) <= risk) <= risk


def test_the_binomial_test_doubles_the_smaller_tail() -> None:
    found = goodness_of_fit(prevalence(TwoCoins(), 40, 100), 0.1)
    assert found.method == "exact binomial test"
    tail = binomtest(40, 100, 0.3, alternative="greater").pvalue
    assert found.p_value == pytest.approx(2 * tail)


def test_the_chi_square_of_fit_is_that_of_the_answers() -> None:
    counts = np.array([500, 300, 200])
    found = goodness_of_fit(Shares(design=THREE, counts=counts), SHARES.tolist())
    theirs = chisquare(counts, 1000 * SHARES @ transition(THREE))
    assert (found.statistic, found.p_value) == pytest.approx((theirs.statistic, theirs.pvalue))
    assert found.degrees == 2


def test_the_test_of_fit_has_its_size_and_the_power_that_is_planned() -> None:
    rng, n = np.random.default_rng(1), 2000
    null = SHARES @ transition(THREE)
    other = np.array([0.72, 0.2, 0.08]) @ transition(THREE)
    rates = []
    for law in (null, other):
        draws = rng.multinomial(n, law, 2000)
        told = [goodness_of_fit(Shares(design=THREE, counts=d), SHARES.tolist()) for d in draws]
        rates.append(sum(each.p_value <= 0.05 for each in told))
    accepts_only(near(rates[0], 2000, 0.002), 0.05, half=0.025, twice=0.1)
    planned = chi_square_power(null, other, respondents=n, degrees=2)
    assert 0.3 < planned < 0.999
    accepts_only(near(rates[1], 2000, 0.01), planned, a_tenth_less=planned - 0.1, more=planned + 0.1)


def test_a_simulated_p_value_agrees_with_its_limit_and_repeats() -> None:
    estimate = Shares(design=THREE, counts=np.array([1100, 520, 380]))
    limit = goodness_of_fit(estimate, SHARES.tolist())
    drawn = goodness_of_fit(estimate, SHARES.tolist(), method="simulated")
    told = within(drawn.p_value, 0.5 / np.sqrt(9999) + 0.005 / SEVEN_SIGMA)
    other_tail = 1 - limit.p_value if abs(limit.p_value - 0.5) > 0.1 else 0.0
    accepts_only(told, limit.p_value, of_the_other_tail=other_tail)
    assert drawn == goodness_of_fit(estimate, SHARES.tolist(), method="simulated")
    # For a handful of answers the limit is far off, and the simulated law is right.
    few = goodness_of_fit(
        Shares(design=THREE, counts=np.array([0, 0, 3])), SHARES.tolist(), method="simulated"
    )
    exact = multinomial_p_value(np.array([0, 0, 3]), SHARES @ transition(THREE))
    smallest = within(few.p_value, np.sqrt(exact * (1 - exact) / 9999))
    accepts_only(smallest, exact, a_fiftieth_more=exact + 0.02, by_half=exact + 0.5)


def multinomial_p_value(counts: Any, rates: Any) -> float:
    """The exact chance of so great a chi-square, by enumeration of ordered answers."""
    n, total = int(counts.sum()), 0.0
    least = float(((counts - n * rates) ** 2 / (n * rates)).sum())
    for answers in product(range(len(rates)), repeat=n):
        drawn = np.bincount(answers, minlength=len(rates))
        if ((drawn - n * rates) ** 2 / (n * rates)).sum() >= least - 1e-9:
            total += float(np.prod(rates[list(answers)]))
    return total


@pytest.mark.parametrize("theta", [0.0, 0.2, 1.0])
def test_fishers_test_errs_at_most_as_often_as_it_says(theta: float) -> None:
    design, sizes = TwoCoins(), (20, 30)
    laws = [binom.pmf(np.arange(n + 1), n, design.yes_rate(theta)) for n in sizes]
    values = [
        [two_sample(prevalence(design, a, 20), prevalence(design, b, 30)).p_value for b in range(31)]
        for a in range(21)
    ]
    for risk in (0.01, 0.05, 0.3):
        assert laws[0] @ (np.array(values) <= risk) @ laws[1] <= risk


def test_fishers_test_doubles_the_smaller_hypergeometric_tail() -> None:
    found = two_sample(prevalence(TwoCoins(), 30, 100), prevalence(TwoCoins(), 50, 120))
    law = hypergeom(220, 80, 100)
    assert found.p_value == pytest.approx(2 * min(law.cdf(30), law.sf(29)), rel=1e-6)
    assert found.method == "Fisher's exact test"


def test_groups_of_several_categories_are_compared_by_pearsons_chi_square() -> None:
    table = np.array([[500, 300, 200], [400, 350, 250]])
    found = two_sample(*(Shares(design=THREE, counts=row) for row in table))
    theirs = chi2_contingency(table, correction=False)
    assert (found.statistic, found.p_value, found.degrees) == pytest.approx(theirs[:3])


def test_groups_with_other_spinners_are_compared_at_the_right_size() -> None:
    """Two designs of one prevalence have unlike answers: only the estimates compare."""
    rng, n, theta = np.random.default_rng(2), 3000, 0.2
    designs = TwoCoins(), ForcedResponse(yes="1/6", no="1/6")
    draws = [rng.binomial(n, design.yes_rate(theta), 2000).tolist() for design in designs]
    found = [
        two_sample(*(prevalence(d, yes, n) for d, yes in zip(designs, pair, strict=True))).p_value <= 0.05
        for pair in zip(*draws, strict=True)
    ]
    accepts_only(near(sum(found), 2000, 0.003), 0.05, half=0.02, twice=0.1)
    unlike = [
        two_sample(*(prevalence(designs[0], yes, n) for yes in pair)).p_value <= 0.05
        for pair in zip(*(part[:100] for part in draws), strict=True)
    ]
    # Answers of two designs differ although the prevalence is one.
    assert sum(unlike) > 90


def test_several_categories_with_other_spinners_have_the_right_size() -> None:
    rng, n, runs = np.random.default_rng(3), 3000, 700
    designs = THREE, ForcedCategory(names=THREE.names, truth="2/5", forced=("1/2", "1/4", "1/4"))
    draws = [rng.multinomial(n, SHARES @ transition(design), runs) for design in designs]
    found = [
        two_sample(*(Shares(design=d, counts=row) for d, row in zip(designs, pair, strict=True))).p_value
        <= 0.05
        for pair in zip(*draws, strict=True)
    ]
    accepts_only(near(sum(found), runs, 0.003), 0.05, never=-0.003, three_times=0.15)


JOINT_DESIGNS = (
    (TwoCoins(), None),
    (TwoCoins(), Warner(truth="3/10")),
    (Crosswise(innocuous="1/4"), THREE),
)


def joint_law(designs: tuple[Design, Design | None], joint: Any) -> Any:
    sides = [
        np.eye(size) if d is None else transition(d) for d, size in zip(designs, joint.shape, strict=True)
    ]
    return sides[0].T @ joint @ sides[1]


def pairs_of(table: Any, designs: tuple[Design, Design | None]) -> tuple[list[Any], list[Any]]:
    labels = [
        list(range(size)) if d is None else list(d.answers)
        for d, size in zip(designs, table.shape, strict=True)
    ]
    first, second = [], []
    for i, j in product(*map(range, table.shape)):
        first += [labels[0][i]] * int(table[i, j])
        second += [labels[1][j]] * int(table[i, j])
    return first, second


@pytest.mark.parametrize(
    "designs", JOINT_DESIGNS, ids=["with a direct answer", "both asked by chance", "three"]
)
def test_independence_is_tested_at_the_right_size_and_with_the_planned_power(designs: Any) -> None:
    rng, n, runs = np.random.default_rng(4), 2500, 400
    columns = 3 if designs[1] is THREE else 2
    margin = SHARES if columns == 3 else np.array([0.6, 0.4])
    alike = np.outer([0.7, 0.3], margin)
    joint = alike.copy()
    joint[0, 0] += 0.1
    joint[1, 0] -= 0.1
    joint[0, -1] -= min(0.1, joint[0, -1])
    joint[1, -1] += 1 - joint.sum()
    rates = []
    for truth in (alike, joint):
        law = joint_law(designs, truth)
        tables = rng.multinomial(n, law.ravel(), runs).reshape(runs, *law.shape)
        found = [independence(*pairs_of(t, designs), designs=designs).p_value <= 0.05 for t in tables]
        rates.append(sum(found))
    accepts_only(near(rates[0], runs, 0.003), 0.05, never=-0.003, four_times=0.2)
    law = joint_law(designs, joint)
    null = np.outer(law.sum(axis=1), law.sum(axis=0))
    planned = chi_square_power(null, law, respondents=n, degrees=columns - 1)
    assert planned > 0.1
    off = 0.2 if planned < 0.5 else -0.2
    accepts_only(near(rates[1], runs, 0.02), planned, of_no_difference=0.05, off=planned + off)


def test_a_test_that_forgets_the_design_is_wrong() -> None:
    """Estimated counts of truths, taken as if they had been seen, reject far too often."""
    rng, n, runs, designs = np.random.default_rng(6), 2500, 150, (TwoCoins(), TwoCoins())
    law = joint_law(designs, np.outer([0.5, 0.5], [0.5, 0.5]))
    back = np.linalg.inv(transition(TwoCoins()))
    tables = rng.multinomial(n, law.ravel(), runs).reshape(runs, 2, 2)
    naive = [chi2_contingency(back.T @ t @ back, correction=False).pvalue <= 0.05 for t in tables]
    accepts_only(at_least(int(np.sum(naive)), runs), 0.4, nearly_always=0.95)


def test_permuted_p_values_are_those_of_all_permutations() -> None:
    first, second = ["yes"] * 3 + ["no"] * 4, [0, 0, 0, 1, 1, 1, 0]
    found = independence(first, second, designs=(TwoCoins(), None), method="permuted")
    # The first group's number of ones is hypergeometric: 3 of 7 answers, 3 of them ones.
    law = hypergeom(7, 3, 3).pmf(np.arange(4))
    statistics = []
    for ones in range(4):
        table = np.array([[3 - ones, ones], [1 + ones, 3 - ones]])
        statistics.append(chi2_contingency(table, correction=False).statistic)
    exact = law[np.array(statistics) >= found.statistic - 1e-9].sum()
    drawn = within(found.p_value, np.sqrt(exact * (1 - exact) / 9999) + 1e-4)
    wrong = float(law[np.array(statistics) > found.statistic + 1e-9].sum())
    accepts_only(drawn, exact, without_its_own=wrong)


def test_the_statistic_is_pearsons_also_where_an_answer_is_missing() -> None:
    first = ["yes"] * 50 + ["no"] * 50
    found = independence(first, [5] * 100, designs=(TwoCoins(), None))
    assert (found.p_value, found.degrees) == (1.0, 0)
    second = ["often", "never"] * 50
    found = independence(first, second, designs=(TwoCoins(), THREE))
    assert found.degrees == 1


@cases(
    "call",
    [
        lambda: goodness_of_fit(prevalence(TwoCoins(), 1, 2), 1.5),
        lambda: goodness_of_fit(prevalence(TwoCoins(), 1, 2), [0.5, 0.6]),
        lambda: goodness_of_fit(Shares(design=THREE, counts=np.array([1, 2, 3])), 0.5),
        lambda: goodness_of_fit(
            Shares(design=THREE, counts=np.array([1, 2, 3])),
            [0.5, 0.25, 0.25],
            method="exact",  # type: ignore[arg-type]
        ),
        lambda: two_sample(prevalence(TwoCoins(), 1, 2), Shares(design=THREE, counts=np.array([1, 2, 3]))),
        lambda: independence([1, 0], [1], designs=(TwoCoins(), None)),
        lambda: independence([1, 4711], [1, 1], designs=(TwoCoins(), None)),
        lambda: independence([1, 0], [1, 1], designs=(TwoCoins(), None), method="exact"),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_fit_is_refused(call: Any) -> None:
    with pytest.raises(ParameterError, match=" must ") as error:
        call()
    assert "4711" not in str(error.value)


def test_groups_of_which_all_say_one_thing_are_told_apart() -> None:
    """Wald's variance at the counted rates would be 0, and no difference large beside it."""
    one, two = Warner(truth="7/10"), Warner(truth="8/10")
    assert two_sample(prevalence(one, 1000, 1000), prevalence(two, 0, 1000)).p_value < 1e-9
    counts = np.array([[500, 0, 0], [0, 0, 500]])
    three = THREE, ForcedCategory(names=THREE.names, truth="4/5")
    shares = (Shares(design=d, counts=row) for d, row in zip(three, counts, strict=True))
    assert two_sample(*shares).p_value < 1e-9
    assert two_sample(prevalence(one, 1, 1), prevalence(two, 0, 0)).p_value == 1.0


def test_small_groups_with_other_spinners_err_no_more_often() -> None:
    rng, runs = np.random.default_rng(4), 300
    designs = THREE, ForcedCategory(names=THREE.names, truth="4/5")
    draws = [rng.multinomial(10, SHARES @ transition(design), runs) for design in designs]
    found = [
        two_sample(*(Shares(design=d, counts=row) for d, row in zip(designs, pair, strict=True))).p_value
        <= 0.05
        for pair in zip(*draws, strict=True)
    ]
    accepts_only(at_most(sum(found), runs), 0.05, never=0.0)


@pytest.mark.parametrize("other", [[1.0, np.nan, np.nan], ["a", None, "b"], [[1], [2], [3]], "abc"])
def test_missing_answers_to_a_direct_question_are_refused(other: Any) -> None:
    with pytest.raises(ParameterError, match=r"first must (have|be) an answer for each"):
        independence(other, ["yes", "no", "yes"], designs=(None, TwoCoins()))


def test_infinite_answers_are_refused_as_any_others() -> None:
    with pytest.raises(ParameterError, match="answers must"):
        TwoCoins().estimate([1.0, float("inf"), 0.0])


@pytest.mark.parametrize("given", ["x", None, 0.2, {"yes": 3, "no": 4}])
def test_tests_take_estimates_alone(given: Any) -> None:
    fine = TwoCoins().estimate({"yes": 30, "no": 40})
    with pytest.raises(ParameterError, match=r"estimate must be an estimate of one sample.*; pass what"):
        goodness_of_fit(given, 0.5)
    with pytest.raises(ParameterError, match=r"first must be an estimate of one sample"):
        two_sample(given, fine)
    with pytest.raises(ParameterError, match=r"second must be an estimate of one sample"):
        two_sample(fine, given)


@pytest.mark.parametrize("designs", [None, (TwoCoins(),), (None, None, None), TwoCoins()])
def test_a_design_is_told_for_each_of_two_answers(designs: Any) -> None:
    with pytest.raises(ParameterError, match=r"designs must be a pair.*; pass \(None, design\)"):
        independence(["yes", "no"], ["yes", "no"], designs=designs)
