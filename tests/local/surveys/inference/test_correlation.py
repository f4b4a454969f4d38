"""Correlations of randomized answers: the inverted table, the delta method by hand, limits, coverage."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.surveys import Design, ForcedCategory, ForcedResponse, TwoCoins, correlation
from tests.cases import cases
from tests.local.laws import covers

DIE, COINS = ForcedResponse(yes="1/6", no="1/6"), TwoCoins()
OFTEN = ForcedCategory(names=(0, 1, 2), truth="3/5")


def transition(design: Design) -> Any:
    return np.array([[float(mass) for mass in row] for row in design.transition])


def answers(table: Any) -> tuple[Any, Any]:
    rows, columns = np.indices(table.shape)
    return np.repeat(rows.ravel(), table.ravel()), np.repeat(columns.ravel(), table.ravel())


def phi(joint: Any, one: Any, two: Any) -> float:
    """The correlation of a joint distribution, by its definition."""
    mean = [joint.sum(axis=1) @ one, joint.sum(axis=0) @ two]
    square = [joint.sum(axis=1) @ one**2, joint.sum(axis=0) @ two**2]
    variances = np.array(square) - np.square(mean)
    return float((one @ joint @ two - mean[0] * mean[1]) / math.sqrt(np.prod(variances)))


TABLES = [(np.array([[290, 210], [220, 280]]), COINS), (np.array([[220, 130, 120], [170, 150, 210]]), OFTEN)]
LETTERS = ForcedCategory(names=("a", "b"), truth="1/2")


@cases("table, second", TABLES)
def test_it_is_the_correlation_of_the_inverted_table(table: Any, second: Design) -> None:
    rates = table / table.sum()
    joint = np.linalg.inv(transition(DIE).T) @ rates @ np.linalg.inv(transition(second))
    numbers = np.arange(2.0), np.arange(float(len(table[0])))
    found = correlation(*answers(table), designs=(DIE, second))
    wanted = phi(joint, *numbers)
    assert found.correlation == pytest.approx(wanted, rel=1e-10)
    assert found.maximum_likelihood == pytest.approx(wanted, rel=1e-5)  # the shares are within [0, 1]
    # The delta method on the multinomial, by differences.
    slopes = np.empty(table.size)
    for index in range(table.size):
        ends = []
        for sign in (1, -1):
            moved = rates.ravel() + sign * 1e-6 * (np.arange(table.size) == index)
            inner = np.linalg.inv(transition(DIE).T) @ (moved / moved.sum()).reshape(table.shape)
            ends.append(phi(inner @ np.linalg.inv(transition(second)), *numbers))
        slopes[index] = (ends[0] - ends[1]) / 2e-6
    flat = rates.ravel()
    variance = (flat @ slopes**2 - (flat @ slopes) ** 2) / table.sum()
    assert found.stddev == pytest.approx(math.sqrt(variance), rel=2e-3)
    lower, upper, _ = found.interval()
    assert lower < wanted < upper
    wald = 1.959964 * found.stddev
    assert (upper - lower) / 2 == pytest.approx(wald, rel=0.15)
    inner_lower, inner_upper, _ = found.interval(0.5)
    assert lower < inner_lower < inner_upper < upper


def test_with_a_number_units_do_not_matter_and_an_answer_of_the_truth_is_numpys() -> None:
    rng = np.random.default_rng(0)
    true = rng.random(400) < 0.4
    number = rng.normal(size=400) + true
    nearly = ForcedResponse(yes="1/100000000", no="1/100000000")
    found = correlation(true, number, designs=(nearly, None))
    assert found.correlation == pytest.approx(np.corrcoef(true, number)[0, 1], rel=1e-6)
    moved = correlation(number * 1e200, true, designs=(None, nearly))
    assert moved.correlation == pytest.approx(found.correlation, rel=1e-9)
    assert moved.interval()[:2] == pytest.approx(found.interval()[:2], rel=1e-8)


def test_raw_estimates_leave_the_range_and_those_of_the_likelihood_do_not() -> None:
    table = np.array([[450, 50], [50, 450]])  # more alike than the devices allow
    found = correlation(*answers(table), designs=(DIE, DIE))
    assert found.correlation > 1
    assert 0.9 < found.maximum_likelihood <= 1 + 1e-12
    lower, upper, _ = found.interval()
    assert 0.9 < lower <= upper == 1


@cases("said", list(itertools.product((0, 1), repeat=2)))
def test_answers_that_show_no_variation_leave_the_whole_range(said: tuple[int, int]) -> None:
    found = correlation([said[0]] * 30, [said[1]] * 30, designs=(DIE, DIE))
    assert math.isnan(found.correlation)
    assert found.interval()[:2] == (-1, 1)
    few = correlation([0, 1], [1, 0], designs=(DIE, DIE))
    assert (few.respondents, few.interval()[:2]) == (2, (-1, 1))
    same = correlation([0, 1] * 20, [0.1] * 40, designs=(DIE, None))
    assert math.isnan(same.correlation)


@cases(
    "options, rule",
    [
        ({"designs": (None, None)}, "designs must be a pair"),
        ({"designs": DIE}, "designs must be a pair"),
        ({"designs": (LETTERS, DIE), "first": ["a", "b"] * 4}, "have numbers"),
        ({"second": [0, 1]}, "have an answer for each of first"),
        ({"designs": (DIE, None), "second": [math.nan] * 8}, "be finite numbers"),
        ({"first": [0, 3] * 4}, "first must each be one of"),
    ],
)
def test_bad_input_is_refused(options: dict[str, Any], rule: str) -> None:
    given: dict[str, Any] = {"first": [0, 1] * 4, "second": [0, 0, 1, 1] * 2, "designs": (DIE, DIE)}
    with pytest.raises(ParameterError, match=rule):
        correlation(**(given | options))
    with pytest.raises(ParameterError, match="level must be"):
        correlation(**given).interval(0)


@cases("kind", ["two", "number"])
def test_intervals_cover(kind: str) -> None:
    rng, runs, held = np.random.default_rng(3), 500, 0
    for _ in range(runs):
        one = rng.random(600) < 0.4
        if kind == "two":
            true = 0.5
            two = np.where(rng.random(600) < true, one, rng.random(600) < 0.4)
            found = correlation(DIE.respond(one, rng=rng), COINS.respond(two, rng=rng), designs=(DIE, COINS))
        else:
            true = math.sqrt(0.24 / 1.24)
            found = correlation(DIE.respond(one, rng=rng), one + rng.normal(size=600), designs=(DIE, None))
        lower, upper, _ = found.interval()
        held += lower <= true <= upper
    covers(held, runs, 0.945, claimed=0.997, most=0.97, under=0.85)
