"""Fit a likelihood in scaled predictors, from several starts, and report it in the predictors as given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from sfumato import _check
from sfumato.local.surveys.regression.likelihood import Array, Maximum, Objective, Problem, maximize

__all__ = [
    "REACH",
    "RUNS",
    "Scaled",
    "best_maximum",
    "reported",
    "scaled_problem",
    "simulated_falls",
    "starts",
]

REACH: Final = 80.0
"""How far in log odds an end of an interval is looked for before it is called infinite."""

RUNS: Final = 199
"""How many times answers are drawn for a simulated test."""

_FLAT: Final = 1e-6
"""An eigenvalue of the information below which the likelihood has no maximum in that direction."""
_SMALL: Final = 1_000_000
"""Respondents times squared coefficients up to which the maximum is looked for from several starts."""


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """A likelihood in predictors of mean 0 and deviation 1, and its way back to those as given.

    Parameters
    ----------
    problem : Problem
    back : array
        ``back @ scaled`` are the coefficients of the predictors as they were given.
    reach : array
        For each of these, how far an end of an interval is looked for.
    """

    problem: Problem
    back: Array
    reach: Array


def scaled_problem(
    matrix: Array, if_false: Array, if_true: Array, *, intercept: bool, reduced: bool
) -> Scaled:
    """Return the problem in predictors of deviation 1, and of mean 0 where there is an intercept."""
    count = matrix.shape[1] + intercept
    middle = matrix.mean(axis=0) if intercept and len(matrix) else np.zeros(matrix.shape[1])
    centered = matrix - middle
    width = np.sqrt((centered**2).mean(axis=0)) if len(matrix) else np.zeros(matrix.shape[1])
    constant = width <= 1e-12 * np.abs(middle)
    scaled = centered / np.where(constant, 1.0, width)
    back = np.diag(1 / np.where(constant, 1.0, width))
    extent = np.ptp(matrix, axis=0) if len(matrix) else width
    reach = REACH / np.where(extent > 0, extent, 1.0)
    if intercept:
        scaled = np.column_stack([np.ones(len(matrix)), scaled])
        shift = np.concatenate([[1.0], -middle / np.where(constant, 1.0, width)])
        back = np.vstack([shift, np.column_stack([np.zeros(count - 1), back])])
        reach = np.concatenate([[REACH + float(np.abs(middle) @ reach)], reach])
    gram = scaled.T @ scaled / max(1, len(matrix))
    if len(matrix) < count or constant.any() or np.linalg.eigvalsh(gram)[0] < 1e-10:
        found = (
            "one is a combination of the others" if len(matrix) >= count else "there are fewer respondents"
        )
        remedy = "leave out what follows from other columns, or is the same for all"
        _check.refuse_state("predictors", "be linearly independent", found, remedy)
    problem = Problem(scaled, if_false, if_true, reduced)
    return Scaled(problem, back, reach)


def starts(problem: Problem) -> list[Array]:
    """Return where to search from: at about the prevalence, and at random where that costs little."""
    matrix, slope = problem.matrix, problem.if_true - problem.if_false
    # Each respondent's unbiased estimate of the truth has this mean, whatever the design.
    bend = slope * (2 - problem.if_true - problem.if_false)
    share = float(np.clip(0.5 + bend.mean() / max(1e-9, 2 * float(np.mean(slope**2))), 0.05, 0.95))
    level = np.linalg.lstsq(matrix, np.full(len(matrix), float(logit(share))), rcond=None)[0]
    found = [level]
    if matrix.size * matrix.shape[1] <= _SMALL:
        rng = np.random.default_rng(0)
        found += [np.zeros(matrix.shape[1]), *(level + rng.normal(size=(4, matrix.shape[1])))]
    return found


def best_maximum(problem: Objective, begin: list[Array], free: Array | None = None) -> Maximum:
    """Return the highest of the maxima from several starts."""
    return max((maximize(problem, start, free) for start in begin), key=lambda found: found.height)


def simulated_falls(problem: Problem, null: Array, space: Array, seed: int) -> Array:
    """Return how far the maximum falls under a hypothesis, for answers that are drawn where it holds.

    Parameters
    ----------
    problem : Problem
    null : array
        The coefficients of the highest maximum under the hypothesis.
    space : array
        In its columns, a basis of the coefficients for which the hypothesis holds.
    seed : int
    """
    rng = np.random.default_rng(seed)
    chance = expit(problem.matrix @ null)
    same = problem.if_false * (1 - chance) + problem.if_true * chance
    falls = []
    for _ in range(RUNS):
        unchanged = rng.random(len(same)) < same
        if_false, if_true = (
            np.where(unchanged, said, 1 - said) for said in (problem.if_false, problem.if_true)
        )
        drawn = replace(problem, if_false=if_false, if_true=if_true)
        begin = starts(drawn)[:1]
        full = best_maximum(drawn, [null, *begin])
        nested = best_maximum(drawn, [null, *(space @ (space.T @ start) for start in begin)], space)
        falls.append(max(0.0, full.height - nested.height))
    return np.array(falls)


def reported(back: Array, best: Maximum, *, reduced: bool) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return coefficients and covariance of the predictors as given, and which have no finite estimate."""
    values, vectors = np.linalg.eigh(best.information)
    flat = values < (0.0 if reduced else _FLAT)
    share = np.abs(back @ vectors[:, flat]) / np.abs(back).max(axis=1)[:, None]
    endless = (share > 1e-3).any(axis=1)
    coefficients = back @ best.coefficients
    root = back @ vectors[:, ~flat] / np.sqrt(values[~flat])
    covariance = root @ root.T
    covariance[endless, :] = covariance[:, endless] = np.nan
    covariance[endless, endless] = np.inf
    return np.where(endless, np.copysign(np.inf, coefficients), coefficients), covariance, endless
