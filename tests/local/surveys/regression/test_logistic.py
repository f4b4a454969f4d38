"""Logistic regression: the likelihood by exact sums, the maximum by closed forms, intervals that cover."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import brentq, minimize
from scipy.special import chdtrc, chdtri, expit, logit

from sfumato.errors import ParameterError
from sfumato.local.surveys import (
    BinaryDesign,
    ForcedResponse,
    LogisticFit,
    TwoCoins,
    logistic_regression,
    two_sample,
)
from sfumato.local.surveys.regression.likelihood import Problem, maximize
from tests.cases import cases
from tests.local.laws import covers
from tests.local.surveys.catalogue import BINARY

DIE = ForcedResponse(yes="1/6", no="1/6")
CUT = float(chdtri(1, 0.05))


def survey(design: BinaryDesign, n: int, *, seed: int = 0, slope: float = 0.8) -> tuple[Any, dict[str, Any]]:
    """Answers, and two predictors, of which the first matters."""
    rng = np.random.default_rng(seed)
    x, group = rng.normal(size=n), rng.random(n) < 0.5
    true = rng.random(n) < expit(-1 + slope * x - 0.5 * group)
    return design.respond(true, rng=rng), {"x": x, "group": group}


def problem_of(design: BinaryDesign, n: int = 6) -> Problem:
    said, columns = survey(design, n)
    if_false, if_true = (
        np.array([float(mass) for mass in row])[said.astype(int)] for row in design.transition
    )
    return Problem(np.column_stack([np.ones(n), columns["x"]]), if_false, if_true)


def exact(problem: Problem, first: Any, second: Any) -> Any:
    """The log likelihood in mpmath."""
    found = mpmath.mpf(0)
    for row, false, true in zip(problem.matrix, problem.if_false, problem.if_true, strict=True):
        chance = 1 / (1 + mpmath.exp(-first * float(row[0]) - second * float(row[1])))
        found += mpmath.log(float(false) * (1 - chance) + float(true) * chance)
    return found


def direct(n: int = 6) -> Problem:
    """Answers that are the truth: chances of 0 and 1."""
    problem = problem_of(DIE, n)
    yes = problem.if_true > problem.if_false
    return Problem(problem.matrix, np.where(yes, 0.0, 1.0), np.where(yes, 1.0, 0.0))


def mangat(n: int = 6) -> Problem:
    """A design in which "no" is never said where the thing is true."""
    problem = problem_of(DIE, n)
    yes = problem.if_true > problem.if_false
    return Problem(problem.matrix, np.where(yes, 0.3, 0.7), np.where(yes, 1.0, 0.0))


PROBLEMS = {
    **{name: problem_of(design) for name, design in BINARY.items()},
    "direct": direct(),
    "mangat": mangat(),
}


@cases("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_the_likelihood_its_gradient_and_louis_information_are_exact(problem: Problem) -> None:
    with mpmath.workdps(40):
        for at in ((-0.7, 0.9), (-6.0, 2.0), (3.0, -1.0)):
            point = tuple(map(mpmath.mpf, at))
            height = exact(problem, *point)
            assert problem.height(np.array(at)) == pytest.approx(float(height), rel=1e-13)
            gradient, information = problem.derivatives(np.array(at))
            for i in range(2):
                order = tuple(int(k == i) for k in range(2))
                slope = mpmath.diff(lambda a, b: exact(problem, a, b), point, order)
                assert gradient[i] == pytest.approx(float(slope), rel=1e-11, abs=1e-13)
                for j in range(2):
                    second = tuple(int(k == i) + int(k == j) for k in range(2))
                    bend = mpmath.diff(lambda a, b: exact(problem, a, b), point, second)
                    assert information[i, j] == pytest.approx(-float(bend), rel=1e-10, abs=1e-13)


@cases("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_the_expected_information_is_the_mean_over_the_answers(problem: Problem) -> None:
    at, whole = np.array([-0.7, 0.9]), np.zeros((2, 2))
    for index, row in enumerate(problem.matrix):
        for flip in (False, True):
            false, true = problem.if_false[index], problem.if_true[index]
            one = Problem(
                row[None, :], np.array([1 - false if flip else false]), np.array([1 - true if flip else true])
            )
            whole += np.exp(one.height(at)) * one.derivatives(at)[1]
    np.testing.assert_allclose(problem.expected_information(at), whole, rtol=1e-12, atol=1e-14)


@cases("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_the_prior_is_half_the_log_determinant_and_its_gradient(problem: Problem) -> None:
    penalized, at = (
        Problem(problem.matrix, problem.if_false, problem.if_true, reduced=True),
        np.array([-0.7, 0.9]),
    )
    added = penalized.height(at) - problem.height(at)
    assert added == pytest.approx(np.log(np.linalg.det(problem.expected_information(at))) / 2, rel=1e-11)
    found = penalized.derivatives(at)[0]
    for index in range(2):
        step = 1e-5 * np.eye(2)[index]
        slope = (penalized.height(at + step) - penalized.height(at - step)) / 2e-5
        assert found[index] == pytest.approx(slope, rel=1e-6, abs=1e-8)


def grouped(counts: tuple[int, int, int, int], design: BinaryDesign = DIE, **options: Any) -> LogisticFit:
    """A fit to two groups, with yes and no in the first, then in the second."""
    said = np.repeat([1, 0, 1, 0], counts)
    return logistic_regression(design, said, {"second": np.repeat([0, 0, 1, 1], counts)}, **options)


@cases("design", BINARY.values(), ids=BINARY)
def test_two_groups_have_the_estimates_of_each_alone(design: BinaryDesign) -> None:
    yes = [round(1000 * design.yes_rate(theta)) for theta in (0.2, 0.45)]
    fit = grouped((yes[0], 1000 - yes[0], yes[1], 1000 - yes[1]), design)
    alone = [design.estimate({design.answers[1]: hits, design.answers[0]: 1000 - hits}) for hits in yes]
    shares = [each.prevalence for each in alone]
    assert fit.coefficients == pytest.approx(
        [logit(shares[0]), logit(shares[1]) - logit(shares[0])], rel=1e-6
    )
    assert fit.predict({"second": [0, 1]}) == pytest.approx(shares, rel=1e-7)
    assert fit.prevalence == pytest.approx(np.mean(shares), rel=1e-7)
    # The delta method, with n in the place of the unbiased n - 1.
    errors = [each.variance * 999 / 1000 / (p * (1 - p)) ** 2 for each, p in zip(alone, shares, strict=True)]
    assert np.diag(fit.covariance) == pytest.approx([errors[0], sum(errors)], rel=1e-6)
    assert fit.covariance[0, 1] == pytest.approx(-errors[0], rel=1e-6)
    assert fit.stddev == pytest.approx(np.sqrt([errors[0], sum(errors)]), rel=1e-6)
    assert (fit.unbounded, fit.converged, fit.respondents) == ((), True, 2000)


def test_the_test_of_two_groups_is_that_of_their_answers() -> None:
    fit = grouped((350, 650, 420, 580))
    table = np.array([[350, 650], [420, 580]])
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / 2000
    statistic = 2 * float((table * np.log(table / expected)).sum())
    found = fit.likelihood_ratio_test("second")
    assert found.degrees == 1
    assert found.statistic == pytest.approx(statistic, rel=1e-8)
    assert found.p_value == pytest.approx(chdtrc(1, statistic), rel=1e-7)
    assert fit.likelihood_ratio_test() == found
    assert fit.profile_deviance("second", 0) == pytest.approx(statistic, rel=1e-8)
    fisher = two_sample(DIE.estimate({"yes": 350, "no": 650}), DIE.estimate({"yes": 420, "no": 580}))
    assert found.p_value == pytest.approx(fisher.p_value, rel=0.2)


def log_likelihood(hits: int, n: int, theta: float) -> float:
    rate = DIE.yes_rate(theta)
    return float(hits * np.log(rate) + (n - hits) * np.log(1 - rate))


def ends(hits: int, n: int) -> list[float]:
    """The prevalences that the likelihood-ratio test of one group does not reject; 0 or 1 for none."""
    best = min(1.0, max(0.0, DIE.estimate({"yes": hits, "no": n - hits}).prevalence))
    top = log_likelihood(hits, n, best)

    def excess(theta: float) -> float:
        return 2 * (top - log_likelihood(hits, n, theta)) - CUT

    lower = brentq(excess, 0, best, xtol=1e-13) if excess(0) > 0 else 0.0
    upper = brentq(excess, best, 1, xtol=1e-13) if excess(1) > 0 else 1.0
    return [lower, upper]


@cases("hits", [40, 50, 54, 60, 90, 240, 260])
def test_profiles_near_0_and_1_are_those_of_the_prevalence(hits: int) -> None:
    fit = grouped((hits, 300 - hits, 150, 150))
    wanted = ends(hits, 300)
    predicted = fit.prediction_interval({"second": [0]})
    assert (predicted.lower[0], predicted.upper[0]) == pytest.approx(wanted, rel=2e-5, abs=1e-12)
    lower, upper, _ = fit.interval("intercept")
    with np.errstate(divide="ignore"):
        assert (lower, upper) == pytest.approx(tuple(logit(wanted)), rel=1e-4)
    at_the_edge = not 1 / 6 < hits / 300 < 5 / 6
    assert fit.unbounded == (("intercept", "second") if at_the_edge else ())
    if at_the_edge:
        assert np.isinf(fit.coefficients).all()
        assert np.isinf(fit.stddev).all()
        assert fit.interval("intercept", method="wald")[:2] == (-np.inf, np.inf)
        assert fit.predict({"second": [0]})[0] == pytest.approx(float(hits > 150), abs=1e-5)


def test_intervals_of_three_coefficients_are_those_of_a_general_optimizer() -> None:
    said, columns = survey(DIE, 400, seed=3)
    fit = logistic_regression(DIE, said, columns)
    matrix = np.column_stack([np.ones(400), columns["x"], columns["group"]])

    def negative(beta: Any) -> float:
        yes = 1 / 6 + 2 / 3 * expit(matrix @ beta)
        return -float(np.log(np.where(said, yes, 1 - yes)).sum())

    best = minimize(negative, fit.coefficients + 0.3, method="BFGS", tol=1e-9)
    assert fit.log_likelihood == pytest.approx(-best.fun, rel=1e-9)
    assert fit.coefficients == pytest.approx(best.x, abs=1e-3)
    for index, name in enumerate(fit.names):
        others = [k for k in range(3) if k != index]
        for end in fit.interval(name, 0.9)[:2]:
            fixed = np.array(fit.coefficients)
            fixed[index] = end

            def nested(free: Any, fixed: Any = fixed, others: Any = others) -> float:
                fixed[others] = free
                return negative(fixed)

            fall = 2 * (minimize(nested, fit.coefficients[others], tol=1e-9).fun - best.fun)
            assert fall == pytest.approx(float(chdtri(1, 0.1)), abs=2e-4)


def test_units_and_order_of_predictors_do_not_matter() -> None:
    said, columns = survey(TwoCoins(), 500, seed=2)
    fit = logistic_regression(TwoCoins(), said, columns)
    year = {"group": columns["group"], "year": 2000 + columns["x"] * 10}
    other = logistic_regression(TwoCoins(), said, pa.table({name: np.asarray(v) for name, v in year.items()}))
    assert other.names == ("intercept", "group", "year")
    assert other.log_likelihood == pytest.approx(fit.log_likelihood, rel=1e-12)
    assert other.coefficients[[1, 2]] == pytest.approx(
        [fit.coefficients[2], fit.coefficients[1] / 10], rel=1e-5
    )
    assert np.divide(other.interval("year")[:2], 0.1) == pytest.approx(fit.interval("x")[:2], rel=1e-4)
    rows = {"x": [0.5, -1], "group": [1, 0]}
    moved = {"year": [2005, 1990], "group": [True, False]}
    assert other.predict(moved) == pytest.approx(fit.predict(rows), rel=1e-5)
    for method in ("profile", "wald"):
        one, two = (f.prediction_interval(r, 0.8, method) for f, r in ((fit, rows), (other, moved)))
        assert one.lower == pytest.approx(two.lower, rel=1e-4)
        assert (one.lower < fit.predict(rows)).all()
        assert (fit.predict(rows) < one.upper).all()


def test_arrays_have_columns_by_number_and_the_intercept_can_be_left_out() -> None:
    said, columns = survey(DIE, 300)
    fit = logistic_regression(DIE, said, np.column_stack([columns["x"], columns["group"]]), intercept=False)
    assert fit.names == ("x1", "x2")
    assert fit.predict([[0.0, 0.0]]) == pytest.approx([0.5])
    assert fit.likelihood_ratio_test().degrees == 2
    wald = fit.interval("x1", 0.95, "wald")
    assert wald.upper - wald.lower == pytest.approx(2 * 1.959964 * fit.stddev[0], rel=1e-6)


def test_jeffreys_prior_leaves_every_estimate_finite_and_moves_little_else() -> None:
    edge = grouped((40, 260, 150, 150), penalty="jeffreys")
    assert edge.unbounded == ()
    assert np.isfinite(edge.coefficients).all()
    assert np.isfinite(edge.stddev).all()
    assert 0 < edge.predict({"second": [0]})[0] < 0.1
    many = [grouped((3500, 6500, 4200, 5800), penalty=penalty) for penalty in (None, "jeffreys")]
    assert many[0].coefficients == pytest.approx(many[1].coefficients, abs=0.01)
    assert 0 < many[0].log_likelihood - many[1].log_likelihood < 1e-2
    # One group and the prior of Jeffreys: the maximum of the product over a grid.
    alone = logistic_regression(
        DIE, [1] * 60 + [0] * 240, np.ones((300, 1)), intercept=False, penalty="jeffreys"
    )
    eta = np.linspace(-6, 2, 80_001)
    theta, rate = expit(eta), 1 / 6 + 2 / 3 * expit(eta)
    height = (
        60 * np.log(rate)
        + 240 * np.log(1 - rate)
        + np.log(theta * (1 - theta))
        - np.log(rate * (1 - rate)) / 2
    )
    assert alone.coefficients[0] == pytest.approx(eta[np.argmax(height)], abs=2e-4)


def test_a_simulated_test_agrees_where_many_answered_and_is_repeatable() -> None:
    fit = grouped((70, 130, 95, 105))
    plain, drawn = fit.likelihood_ratio_test(), fit.likelihood_ratio_test(method="simulated", seed=1)
    assert drawn.statistic == plain.statistic
    assert drawn == fit.likelihood_ratio_test("second", method="simulated", seed=1)
    assert drawn.p_value == pytest.approx(plain.p_value, abs=0.03)
    assert drawn.p_value * 200 == pytest.approx(round(drawn.p_value * 200), abs=1e-9)


def test_the_least_simulated_p_value_is_one_of_200() -> None:
    fit = grouped((25, 75, 75, 25))
    assert fit.likelihood_ratio_test(method="simulated").p_value == 1 / 200
    for name, value in zip(fit.names, fit.coefficients, strict=True):
        assert 0 <= fit.profile_deviance(name, value) < 1e-7


def test_predictors_that_are_nearly_the_same_are_refused_however_many_answered() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    with pytest.raises(ParameterError, match="be linearly independent"):
        logistic_regression(DIE, [1, 0] * 1000, {"x": x, "y": x + 1e-6 * rng.normal(size=2000)})


def test_a_search_from_far_away_finds_the_same_maximum() -> None:
    problem = problem_of(DIE, 500)
    found = [
        maximize(problem, np.array(start)) for start in ((0.0, 0.0), (-12.0, 0.0), (0.0, 9.0), (5.0, 5.0))
    ]
    for other in found:
        assert other.converged
        assert other.height == pytest.approx(found[0].height, rel=1e-9)


@cases(
    "predictors, rule",
    [
        ({"x": [1.0, 2.0]}, "have a row for each answer"),
        ({"x": [1.0] * 8}, "be linearly independent"),
        ({"x": range(8), "y": range(1, 9)}, "be linearly independent"),
        ({"x": [1.0, 2.0, 4.0, float("nan")] * 2}, "be finite numbers"),
        ({"town": ["a", "b"] * 4}, "be finite numbers"),
        ({"intercept": range(8)}, "not be called 'intercept'"),
        ({"x": range(8), "y": range(7)}, "have columns of one length"),
        ({}, "have the columns of the model"),
        ([1.0] * 8, "have columns"),
        (np.arange(72).reshape(8, 9) % 7, "be linearly independent"),
    ],
)
def test_predictors_that_say_nothing_are_refused(predictors: Any, rule: str) -> None:
    with pytest.raises(ParameterError, match=rule):
        logistic_regression(DIE, [1, 0] * 4, predictors)


def test_other_parameters_are_checked() -> None:
    fit = grouped((350, 650, 420, 580))
    bad: Any
    for bad, rule in (
        (lambda: fit.interval("age"), "name must be one of 'intercept', 'second'"),
        (lambda: fit.interval("second", 1.0), "level must be"),
        (lambda: fit.interval("second", 0.9, "bayes"), "method must be"),  # type: ignore[arg-type]
        (lambda: fit.likelihood_ratio_test("age"), "name must be"),
        (lambda: fit.likelihood_ratio_test(method="exact"), "method must be"),  # type: ignore[arg-type]
        (lambda: fit.predict({"first": [1]}), "there is no 'second'"),
        (lambda: fit.predict([[1, 2]]), "have 1 columns"),
        (lambda: grouped((5, 5, 5, 5), penalty="firth"), "penalty must be"),
        (lambda: logistic_regression(None, [1, 0], [[1], [2]]), "design must be"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ParameterError, match=rule):
            bad()


@pytest.mark.exhaustive
def test_intervals_cover_with_their_level() -> None:
    held = np.zeros(3, int)
    for seed in range(400):
        said, columns = survey(DIE, 800, seed=seed)
        fit = logistic_regression(DIE, said, columns)
        for index, (name, true) in enumerate(zip(fit.names, (-1, 0.8, -0.5), strict=True)):
            held[index] += fit.profile_deviance(name, true) <= CUT
    covers(held, 400, 0.93, claimed=0.995, most=0.97, under=0.8)


@cases("unit", [1.0, 1e-90, 1e90])
def test_a_tested_value_is_within_what_floats_can_hold_or_refused(unit: float) -> None:
    x = np.arange(60.0) % 7
    fit = logistic_regression(DIE, [0, 1, 1, 0, 0] * 12, {"x": x * unit})
    for value in (2e4 / unit, 1e308, -1e308):
        for test in (fit.score_test, fit.profile_deviance):
            with pytest.raises(ParameterError, match="value must move the log odds by less than 80,000"):
                test("x", value)
    assert 0 <= fit.score_test("x", 1e4 / unit).p_value <= 1
    assert fit.profile_deviance("x", 1e4 / unit) == pytest.approx(fit.profile_deviance("x", 9e3 / unit))
