"""Randomized response: its distribution against its loss, its estimates against enumeration, its edges."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln

from sfumato.errors import ParameterError
from sfumato.mechanisms import RandomizedResponse
from sfumato.privacy.neighboring import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, frequencies, moments

ABC = ("a", "b", "c")


def rows(mechanism: RandomizedResponse) -> list[list[Fraction]]:
    """The distributions of the report: of each category, and of an answer that is none."""
    count = len(mechanism.categories)
    truth = Fraction(mechanism.truth)
    lie = (1 - truth) / (count - 1)
    return [[truth if i == j else lie for j in range(count)] for i in range(count)] + [
        [Fraction(1, count)] * count
    ]


@cases("count", [2, 3, 10, 1000])
@cases("epsilon", [1e-3, 0.5, 1.0, 5.0, 40.0])
def test_calibration_meets_epsilon_and_no_more_truth_would(count: int, epsilon: float) -> None:
    mechanism = RandomizedResponse.calibrated(categories=range(count), epsilon=epsilon)
    truth = Fraction(mechanism.truth)
    assert mechanism.privacy_loss.epsilon(0.0) <= epsilon
    assert float(truth) == pytest.approx(1 / (1 + (count - 1) * math.exp(-epsilon)), rel=1e-12)
    odds = truth * (count - 1) / (1 - truth)
    assert math.log(odds) <= mechanism.privacy_loss.epsilon(0.0)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_the_loss_is_the_greatest_divergence_of_two_answers(count: int) -> None:
    mechanism = RandomizedResponse(categories=range(count), truth=Fraction(3, 4))
    loss, distributions = mechanism.privacy_loss, rows(mechanism)
    for share in (0.0, 0.3, 0.7, 0.999):
        epsilon = share * loss.epsilon(0.0)
        factor = Fraction(math.exp(epsilon))
        worst = max(
            sum((max(Fraction(0), p - factor * q) for p, q in zip(one, other, strict=True)), Fraction(0))
            for one in distributions
            for other in distributions
        )
        assert float(worst) <= loss.delta(epsilon) * (1 + 1e-12) + 1e-15
        assert loss.delta(epsilon) <= float(worst) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("as_array", [False, True])
def test_reports_come_as_often_as_the_distribution_says(as_array: bool) -> None:
    mechanism = RandomizedResponse(categories=ABC, truth=Fraction(5, 8))
    each = 40_000
    for row, answer in zip(rows(mechanism), [*ABC, "none of them"], strict=True):
        answers: Any = [answer] * each
        release = mechanism.release(np.array(answers) if as_array else answers, rng=4)
        assert [release.value.count(c) for c in ABC] == release.counts.tolist()
        place = (*ABC, "none of them").index(answer)
        wrong = {"another answer": rows(mechanism)[(place + 1) % 4]}
        if answer in ABC:
            wrong["more truth"] = rows(replace(mechanism, truth=Fraction(2, 3)))[place]
        accepts_only(
            frequencies(dict(zip(ABC, release.counts.tolist(), strict=True))),
            dict(zip(ABC, row, strict=True)),
            **{name: dict(zip(ABC, distribution, strict=True)) for name, distribution in wrong.items()},
        )


def test_estimates_are_unbiased_by_enumeration() -> None:
    mechanism = RandomizedResponse(categories=ABC, truth=Fraction(1, 2))
    release = mechanism.release(["a"], rng=0)
    distributions = [rows(mechanism)[place] for place in (0, 0, 1)]
    mean = np.zeros(3)
    for reports in itertools.product(range(3), repeat=3):
        p = math.prod(
            distribution[report] for distribution, report in zip(distributions, reports, strict=True)
        )
        mean += float(p) * replace(release, counts=np.bincount(reports, minlength=3)).frequencies
    assert mean == pytest.approx([2 / 3, 1 / 3, 0])


@cases("respondents", [7, 60])
@cases("share", [0.0, 0.02, 0.3, 0.5, 1.0])
@cases("level", [0.8, 0.95])
def test_intervals_cover_as_they_say(respondents: int, share: float, level: float) -> None:
    mechanism = RandomizedResponse.two_coins(categories=("no", "yes"))
    release = mechanism.release(["no"], rng=0)
    rate = 0.25 + 0.5 * share
    covered = 0.0
    for yes in range(respondents + 1):
        log_p = gammaln(respondents + 1) - gammaln(yes + 1) - gammaln(respondents - yes + 1)
        p = math.exp(log_p + yes * math.log(rate) + (respondents - yes) * math.log(1 - rate))
        interval = replace(release, counts=np.array([respondents - yes, yes])).interval(level)
        covered += p * bool(interval.lower[1] <= share <= interval.upper[1])
    assert level <= covered


def test_standard_deviations_match_the_spread_of_estimates() -> None:
    mechanism = RandomizedResponse.calibrated(categories=ABC, epsilon=1.0)
    rng = np.random.default_rng(2)
    drawn = [mechanism.release(rng.choice(ABC, 500, p=[0.5, 0.3, 0.2]), rng) for _ in range(600)]
    stated = np.mean([release.stddev for release in drawn], axis=0)
    accepts_only(
        moments([release.frequencies for release in drawn]),
        ([0.5, 0.3, 0.2], stated**2),
        larger=([0.5, 0.3, 0.2], (1.25 * stated) ** 2),
        smaller=([0.5, 0.3, 0.2], (0.8 * stated) ** 2),
        moved=([0.45, 0.35, 0.2], stated**2),
    )


def test_one_respondent_none_and_strange_answers() -> None:
    mechanism = RandomizedResponse.calibrated(categories=(0, 1), epsilon=1.0)
    assert mechanism.release(1).value in (0, 1)
    empty = mechanism.release([])
    assert empty.value == []
    assert np.isnan(empty.frequencies).all()
    assert empty.interval().lower.tolist() == [0, 0]
    assert empty.interval().upper.tolist() == [1, 1]
    everybody = replace(mechanism.release([1] * 5, 3), counts=np.array([0, 5])).interval()
    assert (everybody.lower[0], everybody.upper[1]) == (0, 1)  # unbounded, these ends lie outside of [0, 1]
    strange: list[Any] = [None, math.nan, [1], {}, "no", 10**30]
    assert set(mechanism.release(strange).value) <= {0, 1}
    assert set(mechanism.release(np.array([math.nan, 1.0, -math.inf])).value) <= {0, 1}


def test_an_array_of_one_answer_is_that_answer() -> None:
    mechanism = RandomizedResponse(categories=ABC, truth=1 - Fraction(1, 2**60))
    assert {mechanism.release(np.array(ABC[1])).value for _ in range(60)} == {ABC[1]}


@cases("value", [{"a"}, iter(["a"]), {"a": 1}, bytearray(b"a"), np.array([["a"]])])
def test_what_is_neither_an_answer_nor_a_list_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError, match="value must"):
        RandomizedResponse(categories=ABC, truth=0.9).release(value)


@cases(
    ("parameters", "message"),
    [
        ({"categories": ("a",), "truth": 0.9}, "categories must be at least 2"),
        ({"categories": ("a", "a", "b"), "truth": 0.9}, "categories must"),
        ({"categories": "ab", "truth": 0.9}, "categories must"),
        ({"categories": ([], []), "truth": 0.9}, "categories must"),
        ({"categories": ABC, "truth": Fraction(1, 3)}, "truth must be above 1/3 and below 1"),
        ({"categories": ABC, "truth": 1}, "truth must"),
        ({"categories": ABC, "truth": -0.1}, "truth must"),
        ({"categories": ABC, "truth": math.nan}, "truth must"),
        ({"categories": ABC, "truth": Fraction(2**70, 2**70 + 1)}, "truth must have a denominator"),
        ({"categories": ABC, "truth": 0.9, "neighboring": Neighboring.ADD_REMOVE}, "neighboring must"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        RandomizedResponse(**parameters)


def test_bad_requests_are_refused() -> None:
    for epsilon in (0, -1, math.inf, math.nan):
        with pytest.raises(ParameterError, match="epsilon must"):
            RandomizedResponse.calibrated(categories=ABC, epsilon=epsilon)
    with pytest.raises(ParameterError, match="epsilon must be above"):
        RandomizedResponse.calibrated(categories=ABC, epsilon=1e-30)
    with pytest.raises(ParameterError, match="heads must be below 1"):
        RandomizedResponse.two_coins(categories=ABC, heads=1)
