"""Linear regression of randomized answers: unbiased by enumeration, other libraries' fits, coverage."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.local.surveys import (
    Design,
    ForcedCategory,
    ForcedResponse,
    Kuk,
    Mangat,
    MatrixDesign,
    Triangular,
    linear_regression,
)
from tests.cases import cases
from tests.local.laws import covers
from tests.local.surveys.catalogue import BINARY

OFTEN = ForcedCategory(names=(0, 1, 2, 3), truth="3/5")
NEARLY_TRUE = ForcedCategory(names=tuple(range(20)), truth="99999999/100000000")


@cases("design", [*BINARY.values(), Kuk(true="4/5", false="1/5").repeated(2)])
def test_coefficients_are_unbiased_over_all_answers(design: Design) -> None:
    truth, x = np.array([0, 1, 1, 0]), np.array([0.0, 1.0, 3.0, 4.0])
    mean = np.zeros(2)
    for said in itertools.product(range(len(design.answers)), repeat=4):
        chance = np.prod([float(design.transition[t][a]) for t, a in zip(truth, said, strict=True)])
        answers = [design.answers[a] for a in said]
        mean += chance * linear_regression(design, answers, {"x": x}).coefficients
    wanted = np.linalg.lstsq(np.column_stack([np.ones(4), x]), truth.astype(float), rcond=None)[0]
    assert mean == pytest.approx(wanted, abs=1e-12)


def test_answers_that_are_nearly_the_truth_give_the_fit_of_statsmodels() -> None:
    # statsmodels 0.15.0: OLS(...).fit(cov_type="HC3").
    i = np.arange(40)
    x, y = np.round(np.sin(i * 1.7), 3), (i * i * 3 + i) % 11 + 3 * (i % 2)
    fit = linear_regression(NEARLY_TRUE, y, {"x": x, "year": 2000 + i})
    assert fit.coefficients == pytest.approx([-37.0766268, 0.399724855, 0.021104086], rel=1e-5)
    assert fit.stddev == pytest.approx([105.7033318, 0.811862323, 0.0523196817], rel=1e-5)
    rows = {"x": [0.0, 1.0], "year": [2000, 2040]}
    assert fit.predict(rows)[0] == pytest.approx(fit.coefficients[0] + 2000 * fit.coefficients[2], abs=1e-6)
    predicted = fit.prediction_interval(rows)
    assert (predicted.lower < fit.predict(rows)).all()
    assert (fit.predict(rows) < predicted.upper).all()


@cases(
    "options, rule",
    [
        ({"design": ForcedCategory(names=("a", "b", "c"), truth="1/2")}, "have numbers as categories"),
        ({"design": None}, "design must be"),
        ({"predictors": {"x": [1.0] * 8}}, "be linearly independent"),
        ({"predictors": {"x": [0.0] * 7 + [1.0]}}, "determine no coefficient by one row"),
        ({"predictors": {"x": [1e200, 0.0] * 4}}, "between 1e-100 and 1e.100 in size"),
        ({"predictors": {"x": [5e-324, 0.0] * 4}}, "between 1e-100 and 1e.100 in size"),
        ({"predictors": {"x": range(7)}}, "have a row for each answer"),
        ({"predictors": {"intercept": range(8)}}, "not be called 'intercept'"),
        ({"answers": [0, 5] * 4}, "answers must each be one of"),
    ],
)
def test_bad_input_is_refused(options: dict[str, Any], rule: str) -> None:
    given: dict[str, Any] = {"design": OFTEN, "answers": [0, 1, 2, 3] * 2, "predictors": {"x": range(8)}}
    with pytest.raises(ParameterError, match=rule):
        linear_regression(**(given | options))
    fit = linear_regression(OFTEN, [0, 1, 2, 3] * 2, {"x": range(8)})
    with pytest.raises(ParameterError, match="name must be one of 'intercept', 'x'"):
        fit.interval("y")


@cases("design", [OFTEN, MatrixDesign(names=(0, 1), said=(0, 1), matrix=[["0.7", "0.3"], ["0.1", "0.9"]])])
def test_intervals_cover(design: Design) -> None:
    rng, runs, held = np.random.default_rng(5), 500, np.zeros(2, int)
    most = len(design.categories) - 1
    for _ in range(runs):
        x = rng.uniform(size=120)
        said = design.respond(rng.binomial(most, 0.1 + 0.5 * x), rng=rng)
        fit = linear_regression(design, said, {"x": x})
        ends = [fit.interval(name) for name in fit.names]
        held += [low <= true * most <= high for (low, high, _), true in zip(ends, (0.1, 0.5), strict=True)]
    covers(held, runs, 0.945, claimed=0.995, most=0.96, under=0.85)


def test_it_is_the_difference_of_two_prevalences_in_two_groups() -> None:
    die = ForcedResponse(yes="1/6", no="1/6")
    said, group = np.repeat([1, 0, 1, 0], (130, 170, 90, 210)), np.repeat([0, 1], 300)
    fit = linear_regression(die, said, {"second": group})
    one, two = (die.estimate({"yes": yes, "no": 300 - yes}) for yes in (130, 90))
    assert fit.coefficients == pytest.approx([one.prevalence, two.prevalence - one.prevalence], abs=1e-12)
    # HC3 has n - 1 squared in the place of n(n - 1): a little more.
    wanted = np.array([one.variance, one.variance + two.variance]) * 300 / 299
    assert np.diag(fit.covariance) == pytest.approx(wanted, rel=1e-9)


def test_answers_that_are_all_alike_have_the_error_of_the_device() -> None:
    die, x = ForcedResponse(yes="1/6", no="1/6"), np.arange(50.0)
    fit = linear_regression(die, [1] * 50, {"x": x})
    # Whatever is true, "yes" has the variance 5/36, and the slope of the design is 2/3.
    square = np.linalg.inv(np.array([[50.0, x.sum()], [x.sum(), (x**2).sum()]])) * 5 / 36 * 9 / 4
    assert fit.covariance == pytest.approx(square, rel=1e-9)
    # Here "yes" is certain where it is true, and the device may have added nothing.
    drawn = {"x": np.random.default_rng(0).normal(size=50), "later": np.repeat([0, 1], 25)}
    for said in ([1] * 50, drawn["later"]):  # these follow from a predictor
        for design in (Mangat(truth="2/3"), Triangular(innocuous="1/4")):
            sure = linear_regression(design, said, drawn)
            assert sure.interval("x")[:2] == (-np.inf, np.inf)
            some = {"x": [0.0, 1.0], "later": [0, 1]}
            assert sure.prediction_interval(some).upper.tolist() == [np.inf] * 2


@cases("seed", range(3))
def test_no_error_is_below_that_of_the_device(seed: int) -> None:
    die, rng = ForcedResponse(yes="1/6", no="1/6"), np.random.default_rng(seed)
    x = rng.normal(size=12)
    fit = linear_regression(die, rng.random(12) < 0.1, {"x": x})
    rows = np.column_stack([np.ones(12), x])
    least = np.linalg.inv(rows.T @ rows) * 5 / 16
    assert np.linalg.eigvalsh(fit.covariance - least).min() > -1e-9
