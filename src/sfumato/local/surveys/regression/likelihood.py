r"""The likelihood of a logistic regression whose outcome is known only through a randomized answer.

For a respondent with the linear predictor :math:`\eta` the sensitive thing is true with the chance
:math:`\pi = 1/(1 + e^{-\eta})`, and what was said has the chance :math:`f(1 - \pi) + t\pi`, with :math:`f`
and :math:`t` those of the design where it is false and where it is true.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit

__all__ = ["Array", "Maximum", "Objective", "Problem", "maximize"]

Array: TypeAlias = NDArray[np.float64]

_ITERATIONS: Final = 200
_HALVINGS: Final = 40
_CONVERGED: Final = 1e-10
_LONGEST: Final = 8.0
"""So far may one step move any linear predictor: beyond, no parabola is like the likelihood."""


class Objective(Protocol):
    """What a search for a maximum needs of a log likelihood."""

    @property
    def reduced(self) -> bool:
        """Whether a prior is added."""

    def height(self, coefficients: Array) -> float:
        """Return its value."""

    def derivatives(self, coefficients: Array) -> tuple[Array, Array]:
        """Return the gradient, and the observed information of the likelihood."""

    def expected_information(self, coefficients: Array) -> Array:
        """Return a positive semidefinite matrix whose inverse times the gradient leads upward."""

    def moved(self, step: Array) -> float:
        """Return how far a step moves any linear predictor."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    r"""The data of a likelihood.

    Parameters
    ----------
    matrix : array of respondents x coefficients
    if_false, if_true : array
        The chance of what each respondent said, where the sensitive thing is false and where it is true.
    reduced : bool
        Whether half of the log determinant of the expected information, the log of Jeffreys' prior, is added
        to the log likelihood.
    """

    matrix: Array
    if_false: Array
    if_true: Array
    reduced: bool = False

    def height(self, coefficients: Array) -> float:
        """Return the log of the probability of all answers, with the log of the prior if there is one."""
        true, false = self._truth(coefficients)
        with np.errstate(divide="ignore"):
            found = float(np.log(self.if_false * false + self.if_true * true).sum())
        if not self.reduced:
            return found
        sign, log_determinant = np.linalg.slogdet(self.expected_information(coefficients))
        return found + float(log_determinant) / 2 if sign > 0 else -math.inf

    def derivatives(self, coefficients: Array) -> tuple[Array, Array]:
        r"""Return the gradient of the height, and the observed information of the likelihood.

        Notes
        -----
        With :math:`w` the chance that the thing is true given the answer, the gradient of the log likelihood
        is :math:`\sum (w - \pi) x`. The information that the truths would hold, less what is missing of it
        because only answers are known, is :math:`\sum (\pi(1-\pi) - w(1-w)) x x^T`: exactly the negative
        second derivative (Louis 1982, "Finding the observed information matrix when using the EM algorithm").
        """
        true, false = self._truth(coefficients)
        said = self.if_false * false + self.if_true * true
        with np.errstate(divide="ignore", invalid="ignore"):
            known = np.where(said > 0, self.if_true * true / said, 0.5)
            unknown = np.where(said > 0, self.if_false * false / said, 0.5)
        # w - pi, without the loss of digits where both are near 0 or 1.
        gradient = self.matrix.T @ (known * false - unknown * true)
        if self.reduced:
            gradient = gradient + self._gradient_of_prior(coefficients)
        return gradient, self._weighted(true * false - known * unknown)

    def expected_information(self, coefficients: Array) -> Array:
        """Return the mean of the observed information over the answers that might have been given."""
        return self._weighted(self._weights(coefficients)[0])

    def moved(self, step: Array) -> float:
        """Return how far a step moves any linear predictor."""
        return float(np.abs(self.matrix @ step).max(initial=0.0))

    def _gradient_of_prior(self, coefficients: Array) -> Array:
        r"""Return :math:`\sum h_i (\log W_i)' x_i / 2`, with the leverages h and the weights W."""
        weights, slopes = self._weights(coefficients)
        information = self._weighted(weights)
        try:
            solved = cho_solve(cho_factor(information), self.matrix.T)
        except LinAlgError:
            return np.zeros(self.matrix.shape[1])
        leverage = weights * (self.matrix * solved.T).sum(axis=1)
        return np.asarray(self.matrix.T @ (leverage * slopes) / 2)

    def _weights(self, coefficients: Array) -> tuple[Array, Array]:
        """Return what each respondent adds to the expected information, and the derivative of its log."""
        true, false = self._truth(coefficients)
        said = self.if_false * false + self.if_true * true
        other = (1 - self.if_false) * false + (1 - self.if_true) * true
        slope = (self.if_true - self.if_false) * true * false
        with np.errstate(divide="ignore", invalid="ignore"):
            weights = np.where(slope != 0, slope**2 / (said * other), 0.0)
            bend = np.where(slope != 0, slope * (1 / other - 1 / said), 0.0)
        return weights, 2 * (false - true) + bend

    def _weighted(self, weights: Array) -> Array:
        return np.asarray((self.matrix * weights[:, None]).T @ self.matrix)

    def _truth(self, coefficients: Array) -> tuple[Array, Array]:
        """Return the chances that the thing is true and that it is false."""
        eta = self.matrix @ coefficients
        return expit(eta), expit(-eta)


@dataclass(frozen=True, slots=True, eq=False)
class Maximum:
    """Where a height is at its maximum, as far as a search from one start found.

    Parameters
    ----------
    coefficients : array
    height : float
    information : array
        Of the likelihood, there: observed, or expected where there is a prior.
    converged : bool
        Whether the last step promised to raise the height by no more than 1e-10 of it.
    """

    coefficients: Array
    height: float
    information: Array
    converged: bool


def maximize(problem: Objective, start: Array, free: Array | None = None) -> Maximum:
    """Maximize a height from a start, by Newton's method with the observed information.

    Parameters
    ----------
    problem : Objective
    start : array
        Of the coefficients.
    free : array, optional
        Directions, in columns, in which alone the coefficients may move.

    Returns
    -------
    Maximum

    Notes
    -----
    Where the observed information is not positive definite the step is Fisher's, with the expected one, which
    always leads upward. Steps are halved until the height rises.
    """
    within = np.eye(len(start)) if free is None else free
    at, height = start, problem.height(start)
    converged = within.shape[1] == 0
    for _ in range(0 if converged else _ITERATIONS):
        gradient, observed = problem.derivatives(at)
        step = within @ _step(problem, at, within.T @ gradient, observed, within)
        promised = float(gradient @ step)
        moved = problem.moved(step)
        found = _search(problem, at, height, step * min(1.0, _LONGEST / max(moved, _LONGEST)))
        if found is not None:
            at, height = found
        # Where no step helps, what is left to gain is below the rounding of the sum.
        converged = promised <= _CONVERGED * max(1.0, abs(height))
        if converged or found is None:
            break
    information = problem.expected_information(at) if problem.reduced else problem.derivatives(at)[1]
    return Maximum(coefficients=at, height=height, information=information, converged=converged)


def _step(problem: Objective, at: Array, gradient: Array, observed: Array, within: Array) -> Array:
    """Return Newton's step, or Fisher's where that one does not lead upward."""
    try:
        return np.asarray(cho_solve(cho_factor(within.T @ observed @ within), gradient))
    except LinAlgError:
        expected = within.T @ problem.expected_information(at) @ within
    ridge = 1e-9 * float(np.trace(expected)) / len(gradient) + 1e-12
    return np.asarray(np.linalg.solve(expected + ridge * np.eye(len(gradient)), gradient))


def _search(problem: Objective, at: Array, height: float, step: Array) -> tuple[Array, float] | None:
    """Return a higher point on the way of a step and its height; None if there is none."""
    for _ in range(_HALVINGS):
        there = at + step
        higher = problem.height(there)
        if higher > height:
            return there, higher
        step = step / 2
    return None
