"""Mixed models: the likelihood against adaptive integration, no variation, one group's law, coverage."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import chdtrc, expit

from sfumato.errors import ParameterError
from sfumato.local.surveys import Crosswise, ForcedResponse, logistic_regression, mixed_logistic_regression
from sfumato.local.surveys.regression.random_intercepts import RandomInterceptProblem
from tests.cases import cases
from tests.local.laws import covers

DIE = ForcedResponse(yes="1/6", no="1/6")


def survey(seed: int, groups: int, size: int, deviation: float, design: Any = DIE) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), size)
    x = rng.normal(size=len(group))
    true = rng.random(len(group)) < expit(-0.5 + 0.8 * x + deviation * rng.normal(size=groups)[group])
    return design.respond(true, rng=rng), {"x": x}, group


def problem_of(design: Any, nodes: int) -> RandomInterceptProblem:
    said, columns, _ = survey(0, 4, 1, 1.0, design)
    x = np.concatenate([columns["x"], np.linspace(-1, 1, 14)])
    yes = np.concatenate([np.asarray(said), np.arange(14) % 3 == 0]).astype(int)
    if_false, if_true = (np.array([float(mass) for mass in row])[yes] for row in design.transition)
    begins = np.array([0, 1, 3, 10])
    return RandomInterceptProblem(np.column_stack([np.ones(18), x]), if_false, if_true, begins, nodes)


def integrated(problem: RandomInterceptProblem, at: Any) -> float:
    """The log likelihood by adaptive integration over each group's intercept."""
    whole, ends = 0.0, [*problem.begins[1:], len(problem.matrix)]
    for first, last in zip(problem.begins, ends, strict=True):
        eta, deviation = problem.matrix[first:last] @ at[:-1], math.exp(at[-1])
        false, true = problem.if_false[first:last], problem.if_true[first:last]

        def density(u: float, eta: Any = eta, d: float = deviation, f: Any = false, t: Any = true) -> float:
            chance = expit(eta + d * u)
            return float(np.prod(f * (1 - chance) + t * chance)) * math.exp(-u * u / 2)

        whole += math.log(quad(density, -10, 10, points=(-1, 0, 1), epsrel=1e-11, limit=200)[0])
    return whole - len(problem.begins) * math.log(2 * math.pi) / 2


@cases("design", [DIE, Crosswise(innocuous="1/5")])
def test_the_likelihood_is_the_integral_and_its_derivatives_are_those(design: Any) -> None:
    problem = problem_of(design, 60)
    for at in (np.array([0.2, 0.5, 0.1]), np.array([-1.5, 0.7, -1.0])):
        assert problem.height(at) == pytest.approx(integrated(problem, at), abs=2e-8)
        gradient, information = problem.derivatives(at)
        for index, unit in enumerate(1e-4 * np.eye(3)):
            rise = (problem.height(at + unit) - problem.height(at - unit)) / 2e-4
            assert gradient[index] == pytest.approx(rise, abs=1e-6)
            bend = (problem.derivatives(at - unit)[0] - problem.derivatives(at + unit)[0]) / 2e-4
            np.testing.assert_allclose(information[index], bend, atol=2e-5)
        assert np.linalg.eigvalsh(problem.expected_information(at))[0] > -1e-12


def test_the_default_number_of_nodes_is_enough() -> None:
    at = np.array([-0.5, 0.8, math.log(2.0)])
    assert problem_of(DIE, 31).height(at) == pytest.approx(problem_of(DIE, 100).height(at), abs=1e-5)


def test_without_variation_it_is_the_logistic_regression() -> None:
    said, columns, _ = survey(1, 20, 10, 0.0)
    # Groups that alternate with the answers hold less variation than chance gives.
    order = np.empty(200, np.int64)
    order[np.argsort(said, kind="stable")] = np.arange(200)
    group = order % 20
    fit = mixed_logistic_regression(DIE, said, columns, group)
    plain = logistic_regression(DIE, said, columns)
    assert fit.group_stddev == 0.0
    assert fit.coefficients == pytest.approx(plain.coefficients, abs=1e-4)
    assert fit.stddev == pytest.approx(plain.stddev, rel=1e-3)
    assert fit.log_likelihood == pytest.approx(plain.log_likelihood, abs=1e-6)
    assert fit.predict({"x": [0.0, 1.0]}) == pytest.approx(plain.predict({"x": [0.0, 1.0]}), abs=1e-4)
    lower, upper, _ = fit.group_stddev_interval()
    assert lower == 0.0
    assert 0 < upper < 2
    test = fit.heterogeneity_test()
    assert test.p_value > 0.4
    assert 0 <= test.statistic < 1e-6


def test_groups_that_differ_are_found_whatever_they_are_called_and_however_they_are_sorted() -> None:
    said, columns, group = survey(2, 16, 15, 3.0)
    fit = mixed_logistic_regression(DIE, said, columns, group)
    assert fit.groups == 16
    assert fit.converged
    test = fit.heterogeneity_test()
    assert test.p_value == pytest.approx(chdtrc(1, test.statistic) / 2)
    assert test.p_value < 0.01
    mixed = np.random.default_rng(0).permutation(len(group))
    other = mixed_logistic_regression(
        DIE, said[mixed], {"x": columns["x"][mixed]}, np.array([f"g{k:02}" for k in group])[mixed]
    )
    assert other.log_likelihood == pytest.approx(fit.log_likelihood, rel=1e-9)
    assert other.coefficients == pytest.approx(fit.coefficients, rel=1e-4)
    assert fit.likelihood_ratio_test("x").p_value < 0.05
    # Over all groups the chance is nearer to 1/2 than in the middle one.
    inner = expit(fit.coefficients[0] + fit.coefficients[1] * np.array([-3.0, 3.0]))
    over = fit.predict({"x": [-3.0, 3.0]})
    assert inner[0] < over[0] < 0.5 < over[1] < inner[1]


@cases(
    "options, rule",
    [
        ({"groups": [1] * 20}, "groups must be two or more"),
        ({"groups": [0.5] * 20}, "have an integer, a boolean or a text"),
        ({"groups": [0, 0, 1, 1]}, "have a row for each answer"),
        ({"nodes": 1}, "nodes must be from 5 to 100"),
        ({"predictors": {"intercept": range(20)}}, "not be called 'intercept'"),
        ({"design": None}, "design must be"),
    ],
)
def test_bad_input_is_refused(options: dict[str, Any], rule: str) -> None:
    given: dict[str, Any] = {
        "design": DIE,
        "answers": [0, 1] * 10,
        "predictors": {"x": np.arange(20.0) % 7},
        "groups": np.repeat([0, 1], 10),
    }
    with pytest.raises(ParameterError, match=rule):
        mixed_logistic_regression(**(given | options))


@pytest.mark.exhaustive
def test_intervals_cover() -> None:
    runs, held = 36, np.zeros(3, int)
    for seed in range(runs):
        said, columns, group = survey(seed, 24, 12, 1.0)
        fit = mixed_logistic_regression(DIE, said, columns, group, nodes=11)
        ends = [*(fit.interval(name, method="wald") for name in fit.names), fit.group_stddev_interval()]
        held += [low <= true <= high for (low, high, _), true in zip(ends, (-0.5, 0.8, 1.0), strict=True)]
    covers(held, runs, 0.92, claimed=1.0 - 1e-12)


@cases("said", [0, 1])
def test_answers_that_are_all_alike_say_nothing_of_the_groups(said: int) -> None:
    x = np.linspace(-1, 1, 40)
    fit = mixed_logistic_regression(DIE, [said] * 40, {"x": x}, np.repeat(np.arange(8), 5))
    assert math.isnan(fit.group_stddev)
    assert fit.group_stddev_interval()[:2] == (0.0, math.inf)
    assert fit.unbounded == ("intercept", "x")
    assert fit.heterogeneity_test().p_value > 0.4
    assert fit.predict({"x": [0.0]})[0] == pytest.approx(said, abs=1e-6)


@cases("groups", [range(12), [0, 0, 0, *range(1, 10)]])
def test_groups_of_one_member_are_refused(groups: Any) -> None:
    with pytest.raises(ParameterError, match="groups must be two or more with two respondents or more"):
        mixed_logistic_regression(DIE, [0, 1] * 6, {"x": range(12)}, list(groups))


@pytest.mark.exhaustive
def test_groups_of_one_answer_each_do_not_bound_their_deviation() -> None:
    fit = mixed_logistic_regression(
        DIE,
        np.repeat([0, 1] * 4, 6),
        {"x": np.tile(np.linspace(-1, 1, 6), 8)},
        np.repeat(np.arange(8), 6),
        nodes=11,
    )
    lower, upper, _ = fit.group_stddev_interval()
    assert 0 < lower < fit.group_stddev
    assert upper == math.inf
