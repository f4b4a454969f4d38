"""Surveys: logistic regression of randomized answers: CPU time, coverage of intervals, and size of tests.

The floor of the fit is that of the truths themselves, where nobody hides anything.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.optimize import minimize
from scipy.special import chdtri, expit

from sfumato.local import surveys

__all__ = ["main"]

DIE = surveys.ForcedResponse(yes="1/6", no="1/6")
CROSSWISE = surveys.Crosswise(innocuous="1/5")
LIMIT = 2.0


@dataclass(frozen=True)
class Population:
    """People with a normal predictor, a group, and a sensitive trait."""

    label: str
    design: surveys.BinaryDesign
    respondents: int
    intercept: float
    slope: float
    gap: float


POPULATIONS = [
    Population("die, prevalence .27", DIE, 1000, -1.0, 0.8, -0.5),
    Population("die, prevalence .12", DIE, 2000, -2.0, 0.5, -0.3),
    Population("crosswise, prevalence .27", CROSSWISE, 2000, -1.0, 0.8, -0.5),
    Population("two coins, prevalence .5", surveys.TwoCoins(), 2000, 0.0, 0.5, 0.2),
    Population("die, prevalence .02", DIE, 300, -4.0, 0.5, -0.3),
]


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of one call, and what it returned."""
    start = time.process_time()
    made = work()
    return time.process_time() - start, made


def measure_speed(respondents: int, columns: int) -> None:
    """Print the CPU time of one fit, of one interval, and the height that a general optimizer reaches."""
    rng = np.random.default_rng(0)
    matrix, slopes = rng.normal(size=(respondents, columns)), rng.normal(scale=0.3, size=columns)
    truth = rng.random(respondents) < expit(matrix @ slopes - 2)
    said = DIE.respond(truth, rng=rng)
    spent, fit = cpu(lambda: surveys.logistic_regression(DIE, said, matrix))
    other, found = cpu(lambda: _by_hand(np.column_stack([np.ones(respondents), matrix]), said))
    once, _ = cpu(lambda: fit.interval("x1"))
    print(f"{respondents} respondents, {columns} columns: {spent:.2f} s CPU (limit {LIMIT:g} s)")
    height = fit.log_likelihood + found
    print(f"  L-BFGS of scipy, the same likelihood: {other:.2f} s; its maximum is {height:.1e} lower")
    print(f"  one profile interval: {once:.2f} s")


def _by_hand(matrix: Any, said: Any) -> float:
    """The least negative log likelihood that a general optimizer finds."""
    low, slope = float(DIE.yes_if_false), float(DIE.slope)

    def negative(beta: Any) -> tuple[float, Any]:
        chance = expit(matrix @ beta)
        yes = low + slope * chance
        pull = slope * chance * (1 - chance) * np.where(said, 1 / yes, -1 / (1 - yes))
        return -float(np.log(np.where(said, yes, 1 - yes)).sum()), -(matrix.T @ pull)

    return float(minimize(negative, np.zeros(matrix.shape[1]), jac=True, method="L-BFGS-B").fun)


def measure_coverage(population: Population, repeats: int, penalty: Literal["jeffreys"] | None) -> None:
    """Print how often 95 % intervals hold the truth: profile, score and Wald; and how many fits have none."""
    rng, cut = np.random.default_rng(1), float(chdtri(1, 0.05))
    held, score, wald, endless, spent = np.zeros(3), np.zeros(3), np.zeros(3), 0, 0.0
    spanned, whole = np.zeros(3), np.zeros(3)
    true = np.array([population.intercept, population.slope, population.gap])
    for _ in range(repeats):
        x, group = rng.normal(size=population.respondents), rng.random(population.respondents) < 0.5
        eta = population.intercept + population.slope * x + population.gap * group
        said = population.design.respond(rng.random(population.respondents) < expit(eta), rng=rng)
        work = partial(
            surveys.logistic_regression, population.design, said, {"x": x, "group": group}, penalty=penalty
        )
        took, fit = cpu(work)
        spent += took
        endless += bool(fit.unbounded)
        for index, name in enumerate(fit.names):
            held[index] += fit.profile_deviance(name, true[index]) <= cut
            if penalty:  # it is the same without
                score[index] += fit.score_test(name, true[index]).p_value >= 0.05
                lower, upper, _ = fit.interval(name, method="score")
                spanned[index] += lower <= true[index] <= upper
                whole[index] += bool(np.isinf(lower) and np.isinf(upper))
        if not fit.unbounded:
            wald += np.abs(fit.coefficients - true) <= 1.959964 * fit.stddev
    shown = "  ".join(f"{100 * share:5.1f}" for share in held / repeats)
    scored = "  ".join(f"{100 * share:5.1f}" if penalty else "" for share in score / repeats)
    normal = "  ".join(f"{100 * share:5.1f}" for share in wald / max(1, repeats - endless))
    without, each = 100 * endless / repeats, 1000 * spent / repeats
    print(
        f"{population.label:<26}{penalty or '':<9}{population.respondents:>5}  {shown}   {scored:<22}{normal}"
        f"   {without:5.1f} {each:6.1f}",
        flush=True,
    )
    if penalty:
        held_by, lines = (
            "  ".join(f"{100 * share:5.1f}" for share in part / repeats) for part in (spanned, whole)
        )
        print(f"{'':<26}score intervals hold {held_by}; are the whole line in {lines}", flush=True)


def main(argv: Sequence[str]) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks surveys", description=__doc__)
    parser.add_argument("--respondents", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=2000)
    given = parser.parse_args(argv)
    measure_speed(given.respondents, given.columns)
    print(
        "\ncoverage in percent of 95 % intervals: intercept, slope, gap; Wald's of fits that have a maximum"
    )
    print(f"{'population':<26}{'penalty':<9}{'n':>5}  {'profile':<22}{'score':<22}{'Wald':<22}none  ms/fit")
    for population in POPULATIONS:
        for penalty in (None, "jeffreys"):
            measure_coverage(population, given.repeats, penalty)
