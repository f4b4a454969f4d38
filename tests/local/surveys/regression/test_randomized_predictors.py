"""Regression on randomized traits: the likelihood by sums, closed forms, other libraries' fits, coverage."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit

from sfumato.errors import ParameterError
from sfumato.local.surveys import ForcedResponse, MatrixDesign, TwoCoins, randomized_predictor_regression
from sfumato.local.surveys.regression.chain import chain_of
from tests.cases import cases
from tests.local.laws import covers

DIE, COINS = ForcedResponse(yes="1/6", no="1/6"), TwoCoins()
NEARLY_TRUE = ForcedResponse(yes="1/100000000", no="1/100000000")


def drawn(n: int, seed: int) -> tuple[Any, Any, Any, Any]:
    """A covariate, two traits of which the second depends on the first, and a linear predictor."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    first = rng.random(n) < expit(-0.5 + 0.5 * x)
    second = rng.random(n) < expit(-0.2 + 0.8 * first)
    return x, first, second, 0.3 + 0.5 * x + first - 0.7 * second


@cases("kind", ["linear", "logistic", "randomized"])
def test_the_likelihood_is_the_sum_over_all_truths_and_its_derivatives_are_those(kind: str) -> None:
    rng, n = np.random.default_rng(1), 8
    x, first, second, eta = drawn(n, 1)
    said = [DIE.respond(first, rng=rng).astype(int), COINS.respond(second, rng=rng).astype(int)]
    traits: Any = [("a", DIE, said[0]), ("b", COINS, said[1])]
    seen = eta + rng.normal(size=n) if kind == "linear" else (rng.random(n) < expit(eta)).astype(float)
    asked: Any = (
        ("outcome", DIE, DIE.respond(seen > 0.5, rng=rng).astype(int)) if kind == "randomized" else None
    )
    matrix = x[:, None]
    chain = chain_of(matrix, traits, asked, None if asked else seen, linear=kind == "linear")
    at = rng.normal(size=chain.problem.count) / 2
    given = chain.back @ at
    outcome = given[chain.rows] + chain.shift
    scale = chain.scale * math.exp(at[-1])
    height = 0.0
    for i in range(n):
        chance = 0.0
        for a, b in itertools.product((0, 1), repeat=2):
            one = expit(given[0] + given[1] * x[i])
            two = expit(given[2] + given[3] * x[i] + given[4] * a)
            part = (one if a else 1 - one) * (two if b else 1 - two)
            part *= float(DIE.transition[a][said[0][i]]) * float(COINS.transition[b][said[1][i]])
            mean = outcome @ [1, x[i], a, b]
            if kind == "linear":
                part *= math.exp(-(((seen[i] - mean) / scale) ** 2) / 2) / scale / math.sqrt(2 * math.pi)
            elif asked is None:
                part *= expit(mean) if seen[i] else expit(-mean)
            else:
                part *= sum(
                    (expit(mean) if y else expit(-mean)) * float(DIE.transition[y][asked[2][i]])
                    for y in (0, 1)
                )
            chance += part
        height += math.log(chance)
    assert chain.problem.height(at) - n * math.log(chain.scale) == pytest.approx(height, rel=1e-11)
    gradient, information = chain.problem.derivatives(at)
    for index, unit in enumerate(np.eye(len(at)) * 1e-5):
        rise = (chain.problem.height(at + unit) - chain.problem.height(at - unit)) / 2e-5
        assert gradient[index] == pytest.approx(rise, rel=1e-6, abs=1e-8)
        bend = (chain.problem.derivatives(at - unit)[0] - chain.problem.derivatives(at + unit)[0]) / 2e-5
        np.testing.assert_allclose(information[index], bend, rtol=1e-6, atol=1e-7)
    # An EM step's information is at least the observed one.
    assert np.linalg.eigvalsh(chain.problem.expected_information(at))[0] > -1e-9


def test_one_trait_and_a_yes_or_no_are_the_inverted_table() -> None:
    counts = np.array([[260, 140], [150, 250]])  # rows: what was said of the trait; columns: the outcome
    said, outcome = np.repeat([0, 0, 1, 1], counts.ravel()), np.repeat([0, 1, 0, 1], counts.ravel())
    matrix = np.array([[float(mass) for mass in row] for row in DIE.transition])
    truth = np.linalg.solve(matrix.T, counts)
    fit = randomized_predictor_regression(outcome, None, {"trait": (DIE, said)})
    odds = [logit(row[1] / row.sum()) for row in truth]
    assert fit.coefficients == pytest.approx([odds[0], odds[1] - odds[0]], rel=1e-6)
    assert fit.predictor_models[0].coefficients == pytest.approx([logit(truth[1].sum() / 800)], abs=1e-6)
    assert fit.predict([[0], [1]]) == pytest.approx(expit(odds), rel=1e-6)
    # The delta method on the multinomial of the four cells.
    rates, inverse = counts.ravel() / 800, np.kron(np.linalg.inv(matrix.T), np.eye(2))
    cells = inverse @ rates
    slopes = np.array(
        [[-1 / cells[0], 1 / cells[1], 0, 0], [1 / cells[0], -1 / cells[1], -1 / cells[2], 1 / cells[3]]]
    )
    spread = inverse @ (np.diag(rates) - np.outer(rates, rates)) @ inverse.T / 800
    np.testing.assert_allclose(fit.covariance, slopes @ spread @ slopes.T, rtol=1e-5)


def test_answers_that_are_nearly_the_truth_give_the_fits_of_statsmodels() -> None:
    # statsmodels 0.15.0: Logit and OLS (its standard errors times sqrt(57/60), of the maximum likelihood).
    i = np.arange(60)
    x, trait = np.round(np.sin(i * 1.7), 3), (i * 7) % 5 < 2
    yes = (i * i * 3 + i) % 11 < 4 + 3 * trait
    fit = randomized_predictor_regression(yes, {"x": x}, {"trait": (NEARLY_TRUE, trait)})
    assert fit.coefficients == pytest.approx([0.11202840689, -0.0309439703, 0.7740578038], abs=1e-6)
    assert fit.stddev == pytest.approx([0.3340205758, 0.3828479700, 0.5601250742], rel=1e-5)
    value = np.round(2 + 0.5 * x - trait + np.cos(i * 2.3), 3)
    fit = randomized_predictor_regression(value, {"x": x}, {"trait": (NEARLY_TRUE, trait)}, family="linear")
    assert fit.coefficients == pytest.approx([1.9913858131, 0.4506101520, -0.9801139974], abs=1e-6)
    wanted = np.array([0.1210459580, 0.1337897874, 0.1915311651]) * math.sqrt(57 / 60)
    assert fit.stddev == pytest.approx(wanted, rel=1e-5)
    assert fit.residual_stddev == pytest.approx(0.7076042030, rel=1e-6)
    # The likelihood of the traits is added to statsmodels' -64.38408938.
    share = float(trait.mean())
    model = fit.predictor_models[0]
    eta = model.coefficients[0] + model.coefficients[1] * x
    traits = float(np.log(np.where(trait, expit(eta), expit(-eta))).sum())
    assert abs(share - expit(eta).mean()) < 1e-6
    assert fit.log_likelihood == pytest.approx(-64.38408938 + traits, abs=1e-5)


def test_units_of_covariates_and_of_the_outcome_do_not_matter() -> None:
    n = 240
    x, first, second, eta = drawn(n, 2)
    rng = np.random.default_rng(0)
    value = eta + rng.normal(size=n) / 2
    asked: Any = {"a": (DIE, DIE.respond(first, rng=rng)), "b": (COINS, COINS.respond(second, rng=rng))}
    one = randomized_predictor_regression(value, {"x": x}, asked, family="linear")
    two = randomized_predictor_regression(50 + 10 * value, {"x": 2000 + 5 * x}, asked, family="linear")
    assert two.coefficients[1:] == pytest.approx(one.coefficients[1:] * [2, 10, 10], rel=1e-5)
    assert two.log_likelihood == pytest.approx(one.log_likelihood - n * math.log(10), rel=1e-9)
    assert np.divide(two.interval("a")[:2], 10) == pytest.approx(one.interval("a")[:2], rel=1e-4)
    lower, upper, _ = two.interval("intercept", method="wald")
    assert lower < two.coefficients[0] < upper
    rows = np.array([[0.3, 1, 0], [-1.0, 0, 1]])
    moved = rows * [5, 1, 1] + [2000, 0, 0]
    assert two.predict(moved) == pytest.approx(50 + 10 * one.predict(rows), rel=1e-6)
    assert one.names == ("intercept", "x", "a", "b")
    assert [model.names for model in one.predictor_models] == [("intercept", "x"), ("intercept", "x", "a")]
    test = one.likelihood_ratio_test("a", "b")
    assert (test.degrees, test.p_value < 0.05) == (2, True)
    lower, upper, _ = one.interval("a")
    assert lower < one.coefficients[2] < upper


def test_an_answer_in_the_place_of_the_truth_is_biased_and_this_is_not() -> None:
    x, first, _, _ = drawn(6000, 3)
    rng = np.random.default_rng(1)
    value = 1 + 0.5 * x + 2 * first + rng.normal(size=6000)
    said = DIE.respond(first, rng=rng)
    naive = np.linalg.lstsq(np.column_stack([np.ones(6000), x, said]), value, rcond=None)[0]
    fit = randomized_predictor_regression(value, {"x": x}, {"a": (DIE, said)}, family="linear")
    assert naive[2] < 1.5
    lower, upper, _ = fit.interval("a", 0.9999, "wald")
    assert lower < 2 < upper
    assert upper - lower < 0.6


@cases(
    "options, rule",
    [
        ({"randomized": {}}, "randomized must be from 1 to 4"),
        ({"randomized": {"a": DIE}}, "randomized must be from 1 to 4"),
        ({"randomized": {"a": (None, [0, 1] * 10)}}, "pass a design with two answers first"),
        ({"randomized": {"x": (DIE, [0, 1] * 10)}}, "have names of their own"),
        ({"randomized": {"a": (DIE, [0, 1] * 9)}}, "have a row for each respondent"),
        ({"outcome": np.arange(20)}, "be 0 and 1"),
        ({"outcome": ["a"] * 20}, "be a column of finite numbers"),
        ({"outcome": [3.0] * 20, "family": "linear"}, "outcome must have two values or more"),
        ({"outcome": [1e200, 0.0] * 10, "family": "linear"}, "between 1e-100 and 1e.100 in size"),
        ({"predictors": {"x": [1e308, -1e308] * 10}}, "between 1e-100 and 1e.100 in size"),
        ({"family": "probit"}, "family must be"),
        ({"family": "linear", "design": DIE}, "be None for a linear outcome"),
        ({"predictors": {"x": [1.0] * 20}}, "be linearly independent"),
    ],
)
def test_bad_input_is_refused(options: dict[str, Any], rule: str) -> None:
    given: dict[str, Any] = {
        "outcome": [0, 1] * 10,
        "predictors": {"x": np.arange(20.0)},
        "randomized": {"a": (DIE, [0, 0, 1, 1] * 5)},
    }
    with pytest.raises(ParameterError, match=rule):
        randomized_predictor_regression(**(given | options))


def test_names_levels_and_methods_are_checked() -> None:
    fit = randomized_predictor_regression([0, 1] * 20, None, {"a": (DIE, [0, 0, 1, 1] * 10)})
    bad: Any
    for bad, rule in (
        (lambda: fit.interval("b"), "name must be one of"),
        (lambda: fit.interval("a", 2.0), "level must be"),
        (lambda: fit.interval("a", method="score"), "method must be"),  # type: ignore[arg-type]
        (lambda: fit.likelihood_ratio_test("intercept"), "names must be slopes"),
        (lambda: fit.predict({"b": [1]}), "there is no 'a'"),
    ):
        with pytest.raises(ParameterError, match=rule):
            bad()
    matrix = MatrixDesign(names=(0, 1), said=(0, 1), matrix=[["0.7", "0.3"], ["0.2", "0.8"]])
    with pytest.raises(ParameterError, match="pass a design with two answers first"):
        randomized_predictor_regression([0, 1] * 20, None, {"a": (matrix, [0, 1] * 20)})  # type: ignore[dict-item]


@pytest.mark.exhaustive
@cases("kind", ["linear", "logistic", "randomized"])
def test_intervals_cover(kind: str) -> None:
    runs, true = 55, (0.3, 0.5, 1.0)
    held, wald = 0, np.zeros(3, int)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=800)
        first = rng.random(800) < expit(-0.5 + 0.5 * x)
        eta = true[0] + true[1] * x + true[2] * first
        outcome: Any = eta + rng.normal(size=800) if kind == "linear" else rng.random(800) < expit(eta)
        design = DIE if kind == "randomized" else None
        if design is not None:
            outcome = design.respond(outcome, rng=rng)
        asked = {"a": (DIE, DIE.respond(first, rng=rng))}
        family: Any = "linear" if kind == "linear" else "logistic"
        fit = randomized_predictor_regression(outcome, {"x": x}, asked, family=family, design=design)
        wald += np.abs(fit.coefficients - true) <= 1.959964 * fit.stddev
        lower, upper, _ = fit.interval("a")
        held += lower <= true[2] <= upper
    covers(held, runs, 0.93, claimed=1 - 1e-12)
    covers(wald, runs, 0.92, claimed=1 - 1e-12)
