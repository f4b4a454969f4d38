r"""The likelihood of a chain of variables of which some are known only through randomized answers.

Each variable follows a regression on the covariates and on the variables before it. A respondent's truth is
one of :math:`2^m` states of the m hidden ones, and the likelihood of what was seen is the sum over them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import expit, log_expit

from sfumato.local.surveys.regression.likelihood import Array

__all__ = ["LatentProblem", "Stage"]

_Parts: TypeAlias = tuple[Array, Array, Array, Array]


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    r"""The regression of one variable of the chain.

    Parameters
    ----------
    first : int
        Where its coefficients begin.
    matrix : array of respondents x covariates
        The columns that are known.
    bits : tuple of int
        The hidden variables among its predictors; their coefficients stand after those of the matrix.
    hidden : int, optional
        Which hidden variable it is of; else `seen` has its values.
    seen : array, optional
    gaussian : bool
        Whether it is linear with normal errors, whose log deviation is the last coefficient; else logistic.
    """

    first: int
    matrix: Array
    bits: tuple[int, ...]
    hidden: int | None = None
    seen: Array | None = None
    gaussian: bool = False

    @property
    def count(self) -> int:
        """How many coefficients it has."""
        return int(self.matrix.shape[1]) + len(self.bits) + self.gaussian

    @property
    def slice(self) -> slice:
        """Where they are."""
        return slice(self.first, self.first + self.count)

    def rows(self, state: Array) -> Array:
        """Return the predictors of all respondents in a state.

        Parameters
        ----------
        state : array
            0 or 1 for each hidden variable.
        """
        ones = np.ones((len(self.matrix), 1))
        return np.hstack([self.matrix, *(ones * state[bit] for bit in self.bits)])

    def parts(self, coefficients: Array, state: Array, rows: Array) -> _Parts:
        r"""Return the log density, the score's factor, the weight of the information, and the residual.

        Parameters
        ----------
        coefficients : array
            Of the stage alone.
        state, rows : array
            As in `rows`, and what that returns.

        Notes
        -----
        The score of the linear predictor's coefficients is factor times row, and their information weight
        times row times row; the residual is in units of the deviation, and is 0 for a logistic one.
        """
        if not self.gaussian:
            eta = rows @ coefficients
            value = state[self.hidden] if self.hidden is not None else self.seen
            chance, zero = expit(eta), np.zeros(len(rows))
            known = np.asarray(value, dtype=np.float64)
            density = known * log_expit(eta) + (1 - known) * log_expit(-eta)
            factor = known * expit(-eta) - (1 - known) * chance
            return density, factor, chance * expit(-eta), zero
        inverse = float(np.exp(-coefficients[-1]))
        residual = (np.asarray(self.seen) - rows @ coefficients[:-1]) * inverse
        density = -(residual**2) / 2 - coefficients[-1] - np.log(2 * np.pi) / 2
        return density, residual * inverse, np.full(len(rows), inverse**2), residual


@dataclass(frozen=True, slots=True, eq=False)
class LatentProblem:
    """The data of the likelihood.

    Parameters
    ----------
    stages : tuple of Stage
        One for each variable, hidden ones before those that depend on them.
    emission : array of states x respondents
        The log chance of what each respondent answered, in each state.
    states : array of states x hidden variables
    """

    stages: tuple[Stage, ...]
    emission: Array
    states: Array

    @property
    def reduced(self) -> bool:
        """There is no prior."""
        return False

    @property
    def count(self) -> int:
        """How many coefficients there are."""
        return sum(stage.count for stage in self.stages)

    def height(self, coefficients: Array) -> float:
        """Return the log of the density of all that was seen.

        Parameters
        ----------
        coefficients : array
        """
        return float(np.logaddexp.reduce(self._densities(coefficients)).sum())

    def posterior(self, coefficients: Array) -> Array:
        """Return the chance of each state given what was seen, states x respondents.

        Parameters
        ----------
        coefficients : array
        """
        densities = self._densities(coefficients)
        return np.asarray(np.exp(densities - np.logaddexp.reduce(densities)))

    def derivatives(self, coefficients: Array) -> tuple[Array, Array]:
        r"""Return the gradient, and the observed information by Louis' formula.

        Parameters
        ----------
        coefficients : array

        Notes
        -----
        With the chance :math:`w` of each state given what was seen, and the score :math:`S` and information
        :math:`H` that the truth would have, it is :math:`\sum_i (E_w H_i - Var_w S_i)` (Louis 1982).
        """
        complete, gradient, missing = self._louis(coefficients, observed=True)
        return gradient, complete - missing

    def expected_information(self, coefficients: Array) -> Array:
        """Return the information that the truths would hold: an EM step's, which always leads upward.

        Parameters
        ----------
        coefficients : array
        """
        return self._louis(coefficients, observed=False)[0]

    def moved(self, step: Array) -> float:
        """Return how far a step moves any linear predictor.

        Parameters
        ----------
        step : array
        """
        found = 0.0
        for stage in self.stages:
            part = step[stage.slice]
            own = part[: stage.matrix.shape[1]]
            rest = float(np.abs(part[stage.matrix.shape[1] :]).sum())
            # A deviation by a factor e, or a mean by 8 deviations, is far.
            scale = 4.0 if stage.gaussian else 1.0
            found = max(found, scale * (float(np.abs(stage.matrix @ own).max(initial=0.0)) + rest))
        return found

    def _densities(self, coefficients: Array) -> Array:
        found = self.emission.copy()
        for index, state in enumerate(self.states):
            for stage in self.stages:
                found[index] += stage.parts(coefficients[stage.slice], state, stage.rows(state))[0]
        return found

    def _louis(self, coefficients: Array, *, observed: bool) -> tuple[Array, Array, Array]:
        """Return the complete information, the gradient, and what is missing of the information."""
        weights, size = self.posterior(coefficients), len(coefficients)
        complete, missing = np.zeros((size, size)), np.zeros((size, size))
        mean = np.zeros((self.emission.shape[1], size))
        for weight, state in zip(weights, self.states, strict=True):
            score = np.zeros_like(mean)
            for stage in self.stages:
                rows = stage.rows(state)
                _, factor, bend, residual = stage.parts(coefficients[stage.slice], state, rows)
                _place(complete, stage, rows, weight, (factor, bend, residual), observed=observed)
                width = rows.shape[1]
                score[:, stage.first : stage.first + width] = factor[:, None] * rows
                if stage.gaussian:
                    score[:, stage.first + width] = residual**2 - 1
            mean += weight[:, None] * score
            missing += (weight[:, None] * score).T @ score
        return complete, mean.sum(axis=0), missing - mean.T @ mean


def _place(
    into: Array,
    stage: Stage,
    rows: Array,
    weight: Array,
    parts: tuple[Array, Array, Array],
    *,
    observed: bool,
) -> None:
    """Add a stage's information in one state: of the truths seen, or expected given the state."""
    factor, bend, residual = parts
    width = rows.shape[1]
    inner = slice(stage.first, stage.first + width)
    into[inner, inner] += (rows * (weight * bend)[:, None]).T @ rows
    if not stage.gaussian:
        return
    last = stage.first + width
    if not observed:
        into[last, last] += 2 * float(weight.sum())
        return
    cross = rows.T @ (2 * weight * factor)
    into[inner, last] += cross
    into[last, inner] += cross
    into[last, last] += 2 * float(weight @ residual**2)
