"""Designs for numbers: what is priced and weighted is what is drawn, by enumeration."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.surveys import (
    AdditiveScrambling,
    MultiplicativeScrambling,
    NumberDesign,
    UnrelatedNumber,
    instruction_sheet,
    respondents_for_margin,
    respondents_for_mean,
)
from sfumato.local.surveys.designs.privacy_loss import loss_of
from sfumato.local.surveys.sheets.words import LANGUAGES
from sfumato.privacy import loss_from_json
from tests.cases import cases
from tests.chance import accepts_only, frequencies

DIE = {face: Fraction(1, 6) for face in range(-2, 4)}
CLOCK = {0: "1/2", 1: "1/4", 2: "1/8", 3: "1/16", 4: "1/16"}
NUMBERS: dict[str, NumberDesign] = {
    "sums": AdditiveScrambling(lower=-1, upper=4, noise=DIE),
    "clock": AdditiveScrambling(lower=2, upper=6, noise=CLOCK, wrap=True),
    "clock backwards": AdditiveScrambling(
        lower=-3, upper=-1, noise={-1: "1/3", 0: "5/9", 7: "1/9"}, wrap=True
    ),
    "half a clock": AdditiveScrambling(lower=0, upper=4, noise={0: "3/4", 1: "1/4"}, wrap=True),
    "products": MultiplicativeScrambling(lower=0, upper=5, factors={1: "1/2", 2: "1/3", 3: "1/6"}),
    "signed products": MultiplicativeScrambling(lower=-2, upper=2, factors={1: "1/2", 2: "1/2"}),
    "even mixture": UnrelatedNumber(lower=0, upper=4, truth="1/2", other=dict.fromkeys(range(5), "1/5")),
    "mixture": UnrelatedNumber(lower=0, upper=2, truth="2/3", other={0: "1/2", 1: "1/4", 2: "1/8", 9: "1/8"}),
    "a third of it": UnrelatedNumber(lower=0, upper=2, truth="2/3", other={0: "1/2", 1: "1/2"}),
    "two numbers": UnrelatedNumber(lower=0, upper=1, truth="1/3", other={0: "1/4", 1: "3/4"}),
}
FINITE = ("clock", "clock backwards", "even mixture", "mixture", "two numbers")
EVERY = cases("name", list(NUMBERS))


@EVERY
def test_chances_add_up_and_weights_are_unbiased_for_every_number(name: str) -> None:
    design = NUMBERS[name]
    assert all(sum(row) == 1 for row in design.transition)
    expected = np.array([[float(mass) for mass in row] for row in design.transition]) @ design.weights
    np.testing.assert_allclose(expected, np.arange(design.lower, design.upper + 1), rtol=1e-12, atol=1e-12)


@EVERY
def test_the_loss_is_the_worst_of_all_pairs_of_numbers(name: str) -> None:
    design = NUMBERS[name]
    columns = list(zip(*design.transition, strict=True))
    zero = any(not min(column) for column in columns)
    assert zero == (name not in FINITE)
    worst = math.inf if zero else max(max(column) / min(column) for column in columns)
    assert design.odds == worst
    assert design.epsilon == math.inf if zero else 0 <= design.epsilon - math.log(worst) < 1e-12
    for epsilon in (0.0, 0.3, 1.0, 3.0):
        wanted = max(
            sum(max(0.0, float(q) - math.exp(epsilon) * float(p)) for p, q in zip(one, two, strict=True))
            for one, two in permutations(design.transition, 2)
        )
        assert design.privacy_loss.delta(epsilon) == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    again = loss_from_json(design.privacy_loss.to_json())
    assert again.epsilon(0.01) == design.privacy_loss.epsilon(0.01)


@EVERY
def test_the_trade_off_is_that_of_the_whole_matrix(name: str) -> None:
    """What a design leaves out, pairs that tell no more and answers that tell nothing, changes no vertex."""
    design = NUMBERS[name]
    whole, found = loss_of(design.transition), design.privacy_loss
    if type(whole) is type(found):
        assert found.to_json() == whole.to_json()
    else:  # even odds have a leaf of their own
        assert name == "even mixture"
        assert (found * 3).delta(1.0) == pytest.approx((whole * 3).delta(1.0), rel=1e-6)


@EVERY
def test_answers_are_drawn_as_they_are_priced(name: str) -> None:
    design, draws = NUMBERS[name], 20_000
    said = design.respond([design.upper] * draws, rng=5).tolist()
    laws = [dict(zip(design.answers, row, strict=True)) for row in design.transition]
    right, wrong = ({answer: part for answer, part in law.items() if part} for law in (laws[-1], laws[0]))
    check = frequencies({answer: said.count(answer) for answer in set(said)})
    accepts_only(check, right, other_bound=wrong)


def test_what_an_answer_leaves_possible() -> None:
    sums, clock = NUMBERS["sums"], NUMBERS["clock"]
    assert (sums.possible(7), sums.possible(-3), sums.possible(6)) == ((4,), (-1,), (3, 4))
    assert clock.possible(2) == (2, 3, 4, 5, 6)
    with pytest.raises(ParameterError, match="answer must be one of the design's answers"):
        clock.possible(7)


@EVERY
def test_the_variance_of_a_mean_and_the_largest_one(name: str) -> None:
    design = NUMBERS[name]
    matrix = np.array([[float(mass) for mass in row] for row in design.transition])
    rng = np.random.default_rng(3)
    shares = rng.dirichlet(np.full(len(matrix), 0.3), 200)
    rates = shares @ matrix
    exact = rates @ design.weights**2 - (rates @ design.weights) ** 2
    assert design.variance(7, shares[0].tolist()) == pytest.approx(exact[0] / 7)
    assert exact.max() <= design.worst_variance * (1 + 1e-9)
    # It is reached, on a mixture of two numbers.
    parts = np.linspace(0, 1, 101)[:, None]
    for one, two in permutations(np.eye(len(matrix)), 2):
        rates = (parts * one + (1 - parts) * two) @ matrix
        exact = np.append(exact, rates @ design.weights**2 - (rates @ design.weights) ** 2)
    assert exact.max() == pytest.approx(design.worst_variance, rel=1e-3)


def test_numbers_of_respondents_meet_the_margin_and_one_less_does_not() -> None:
    design = NUMBERS["even mixture"]
    width = float(np.ptp(design.weights))
    plan = respondents_for_mean(design, 0.2)
    assert plan.respondents == math.ceil(width**2 * math.log(40) / (2 * 0.2**2))
    assert plan.exact
    loose = respondents_for_mean(design, 0.2, method="wald")
    assert loose.respondents == math.ceil(1.959964**2 * design.worst_variance / 0.2**2)
    assert not loose.exact
    for method in ("hoeffding", "bernstein"):
        found = respondents_for_mean(design, 0.2, method=method)
        # The answers that make it widest: half of each extreme.
        lowest, highest = design.answers[0], design.answers[-1]
        for count, holds in ((found.respondents, True), (found.respondents - 1, False)):
            answers = {lowest: count // 2, highest: count - count // 2}
            lower, upper, _ = design.estimate(answers).interval(method=method)
            if holds:
                assert (upper - lower) / 2 <= 0.2 * (1 + 1e-9)
            elif method == "hoeffding":
                assert (upper - lower) / 2 > 0.2


@cases("language", LANGUAGES)
def test_sheets_say_what_is_done_and_what_a_result_shows(language: str) -> None:
    for name, design in NUMBERS.items():
        text = instruction_sheet(design, question="How <often>?", language=language).text()
        first, second = text.split("\f")
        assert "{" not in first
        assert ("= 1." in second or "epsilon = " in second) == (name in FINITE)
        assert "[                ]" in first
        assert all(f"{weight:.9g}" in second for weight in design.weights.tolist())
    assert "&lt;often&gt;" in instruction_sheet(NUMBERS["sums"], question="How <often>?").html()


def test_a_sheet_in_words() -> None:
    pages = [" ".join(page.split()) for page in _sheet("clock").text().split("\f")]
    assert (
        "If the result is above 6, subtract 5; if it is below 2, add 5; until it is from 2 to 6." in pages[0]
    )
    assert "area A Leave your number as it is. area B Add 1 to your number." in pages[0]
    assert "makes no number more than 8 times as likely" in pages[0]
    assert "epsilon = 2.0795" in pages[1]
    sure = " ".join(_sheet("sums").text().split())
    assert "after the one that shows most, 1 of the 6 possible numbers remain" in sure
    assert "epsilon is infinite" in sure
    assert "Subtract 2 from your number." in sure
    harmless = _sheet("even mixture", other="How many siblings do you have, up to 4?").text()
    assert "Write down the true answer to the other question." in harmless
    assert "Multiply your number by 3." in _sheet("products").text()


def _sheet(name: str, **more: Any) -> Any:
    return instruction_sheet(NUMBERS[name], question="How often?", **more)


UNKNOWN: Any = "exact"


def additive(**options: Any) -> AdditiveScrambling:
    return AdditiveScrambling(**options)


def multiplicative(**options: Any) -> MultiplicativeScrambling:
    return MultiplicativeScrambling(**options)


@cases(
    ("make", "part"),
    [
        (lambda: additive(lower=0, upper=0, noise=DIE), "upper must be above lower"),
        (
            lambda: additive(lower=0, upper=101, noise=DIE),
            "and below 101",
        ),
        (lambda: additive(lower=0.5, upper=3, noise=DIE), "lower must be a whole number"),
        (lambda: additive(lower=0, upper=True, noise=DIE), "upper must be a whole number"),
        (lambda: additive(lower=0, upper=10**30, noise=DIE), "upper must be a whole number"),
        (lambda: additive(lower=0, upper=3, noise={0: 1}), "noise must be strictly between"),
        (lambda: additive(lower=0, upper=3, noise={0: "1/2"}), "noise must be from 2 to 101"),
        (lambda: additive(lower=0, upper=3, noise={0: "1/2", 0.5: "1/2"}), "from 2 to"),
        (
            lambda: additive(lower=0, upper=3, noise=[(0, "1/2"), (0, "1/2")]),
            "noise must be from 2",
        ),
        (lambda: additive(lower=0, upper=3, noise="01"), "noise must be from 2"),
        (lambda: additive(lower=0, upper=3, noise={0: "1/2", 10**9: "1/2"}), ""),
        (lambda: additive(lower=0, upper=100, noise={3 * n: "1/64" for n in range(64)}), "256"),
        (lambda: additive(lower=0, upper=3, noise=DIE, wrap=1), "wrap must be True or False"),
        (lambda: additive(lower=0, upper=1, noise={0: "1/2", 1: "1/2"}, wrap=True), "estimable"),
        (lambda: additive(lower=0, upper=1, noise={0: "1/2", 2: "1/2"}, wrap=True), None),
        (lambda: multiplicative(lower=0, upper=3, factors={0: "1/2", 1: "1/2"}), "factors must be"),
        (lambda: UnrelatedNumber(lower=0, upper=3, truth=1, other=DIE), "truth must be strictly between"),
        (lambda: UnrelatedNumber(lower=0, upper=3, truth="1/2", other={}), "other must be from 2"),
        (lambda: NUMBERS["sums"].slope, "design must have one slope"),
        (lambda: NUMBERS["sums"].floor, "design must have one slope"),
        (lambda: respondents_for_margin(NUMBERS["sums"], 0.1), "respondents_for_mean"),
        (lambda: respondents_for_mean(NUMBERS["sums"], 2.5), "margin must be below 2.5"),
        (lambda: respondents_for_mean(NUMBERS["sums"], 1e-300), "margin must be met"),
        (lambda: respondents_for_mean(NUMBERS["sums"], 0.1, level=1), "level must be"),
        (lambda: respondents_for_mean(NUMBERS["sums"], 0.1, method=UNKNOWN), "method must be one of"),
        (lambda: NUMBERS["sums"].variance(1, [1.0]), "distribution must be a share for each number"),
        (lambda: NUMBERS["sums"].estimate([99]), "answers must each be one of"),
        (lambda: _sheet("sums", other="How many?"), "other must be left out"),
    ],
)
def test_designs_and_plans_that_cannot_be_are_refused(make: Any, part: str | None) -> None:
    if not part:  # a device may add as little as nothing, or as much as it likes
        make()
        return
    with pytest.raises(ParameterError) as error:
        make()
    assert part in str(error.value)


def test_variance_does_not_change_with_the_place_of_zero() -> None:
    near, far = (
        UnrelatedNumber(
            lower=low, upper=low + 3, truth="1/2", other={low + step: "1/4" for step in range(4)}
        ).variance(1, [0.25] * 4)
        for low in (0, 10**9 - 3)
    )
    assert near == pytest.approx(5.0)
    assert far == pytest.approx(near)


@pytest.mark.parametrize("shares", [[math.nan] * 4, "abc", {0: 1}, [["a"]], [math.inf, 0, 0, 0]])
def test_variance_refuses_what_is_no_distribution(shares: Any) -> None:
    design = UnrelatedNumber(lower=0, upper=3, truth="1/2", other=dict.fromkeys(range(4), "1/4"))
    with pytest.raises(ParameterError, match="distribution must be a share for each number"):
        design.variance(1, shares)
