r"""The likelihood of a logistic regression with random intercepts, of an outcome known by randomized answers.

A respondent of group j has the linear predictor :math:`\eta_i + \sigma u_j`, with a standard normal u. The
likelihood of a group is the integral over u, by adaptive Gauss-Hermite quadrature.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.polynomial.hermite import hermgauss
from numpy.typing import NDArray
from scipy.special import expit

from sfumato.local.surveys.regression.likelihood import Array

__all__ = ["RandomInterceptProblem"]

_ITERATIONS: Final = 60
_CONVERGED: Final = 1e-9
_HALVINGS: Final = 20


@dataclass(frozen=True, slots=True, eq=False)
class RandomInterceptProblem:
    """The data of the likelihood; its last coefficient is the log of the random intercept's deviation.

    Parameters
    ----------
    matrix : array of respondents x coefficients
        Sorted by group.
    if_false, if_true : array
        The chance of what each respondent said, where the sensitive thing is false and where it is true.
    begins : int array
        The index of each group's first respondent.
    nodes : int
        Of the quadrature.
    """

    matrix: Array
    if_false: Array
    if_true: Array
    begins: NDArray[np.int64]
    nodes: int

    @property
    def reduced(self) -> bool:
        """There is no prior."""
        return False

    def height(self, coefficients: Array) -> float:
        """Return the log of the probability of all answers.

        Parameters
        ----------
        coefficients : array
        """
        return float(np.logaddexp.reduce(self._integrands(coefficients)[1], axis=1).sum())

    def derivatives(self, coefficients: Array) -> tuple[Array, Array]:
        r"""Return the gradient, and the observed information.

        Parameters
        ----------
        coefficients : array

        Notes
        -----
        By Fisher's identity and Louis' formula: with the weights :math:`w` of the nodes given the answers of
        a group, and its score :math:`S` and information :math:`H` at a node, they are the sums over groups of
        :math:`E_w S` and of :math:`E_w H - Var_w S`, exact but for the quadrature.
        """
        gradient, complete, missing = self._louis(coefficients, expected=False)
        return gradient, complete - missing

    def expected_information(self, coefficients: Array) -> Array:
        """Return the expected information that the groups' intercepts would leave.

        Parameters
        ----------
        coefficients : array
        """
        return self._louis(coefficients, expected=True)[1]

    def moved(self, step: Array) -> float:
        """Return how far a step moves any linear predictor.

        Parameters
        ----------
        step : array
        """
        # A deviation by a factor of e is half of the way that one step may go.
        return float(np.abs(self.matrix @ step[:-1]).max(initial=0.0)) + 4 * abs(float(step[-1]))

    def _integrands(self, coefficients: Array) -> tuple[Array, Array]:
        """Return the nodes, groups x nodes, and the log of what is added up at each."""
        eta, deviation = self.matrix @ coefficients[:-1], math.exp(float(coefficients[-1]))
        middle, width = self._modes(eta, deviation)
        points, weights = hermgauss(self.nodes)
        nodes = middle[:, None] + math.sqrt(2) * width[:, None] * points
        height = self._joint(eta, deviation, nodes)
        return nodes, height + points**2 + np.log(weights) + np.log(width / math.sqrt(math.pi))[:, None]

    def _joint(self, eta: Array, deviation: float, nodes: Array) -> Array:
        """Return the log of a group's likelihood and the normal kernel, at its nodes."""
        chance = expit(eta[:, None] + deviation * self._repeated(nodes))
        with np.errstate(divide="ignore"):
            said = np.log(self.if_false[:, None] * (1 - chance) + self.if_true[:, None] * chance)
        return np.asarray(np.add.reduceat(said, self.begins, axis=0) - nodes**2 / 2)

    def _modes(self, eta: Array, deviation: float) -> tuple[Array, Array]:
        """Return where the integrand of each group is highest, and the width of a normal curve there."""
        at = np.zeros(len(self.begins))
        height = self._joint(eta, deviation, at[:, None])[:, 0]
        for _ in range(_ITERATIONS):
            slope, _, weight = self._bends(eta[:, None] + deviation * self._repeated(at[:, None]))
            pull = deviation * np.add.reduceat(slope[:, 0], self.begins) - at
            step = pull / (1 + deviation**2 * np.add.reduceat(weight[:, 0], self.begins))
            for _ in range(_HALVINGS):
                higher = self._joint(eta, deviation, (at + step)[:, None])[:, 0]
                worse = higher < height - 1e-12
                if not worse.any():
                    break
                step = np.where(worse, step / 2, step)
            at = at + np.where(worse, 0.0, step)
            height = np.where(worse, height, higher)
            if float(np.abs(step).max(initial=0.0)) < _CONVERGED:
                break
        _, bend, _ = self._bends(eta[:, None] + deviation * self._repeated(at[:, None]))
        curve = 1 + deviation**2 * np.add.reduceat(bend[:, 0], self.begins)
        # Where the answers speak against a normal curve it is no wider than the prior's.
        return at, 1 / np.sqrt(np.maximum(curve, 1.0))

    def _repeated(self, groups: Array) -> Array:
        """Return each respondent's row of what their group has."""
        sizes = np.diff(np.append(self.begins, len(self.matrix)))
        return np.asarray(np.repeat(groups, sizes, axis=0))

    def _bends(self, eta: Array) -> tuple[Array, Array, Array]:
        """Return the score, the observed and the expected information of each linear predictor."""
        true, false = expit(eta), expit(-eta)
        low, high = self.if_false[:, None], self.if_true[:, None]
        said = low * false + high * true
        with np.errstate(divide="ignore", invalid="ignore"):
            known = np.where(said > 0, high * true / said, 0.5)
            unknown = np.where(said > 0, low * false / said, 0.5)
            slope = (high - low) * true * false
            weight = np.where(slope != 0, slope**2 / (said * (1 - said)), 0.0)
        return known * false - unknown * true, true * false - known * unknown, weight

    def _louis(self, coefficients: Array, *, expected: bool) -> tuple[Array, Array, Array]:
        """Return the gradient, the mean information given the intercepts, and what is missing of it."""
        eta, deviation = self.matrix @ coefficients[:-1], math.exp(float(coefficients[-1]))
        nodes, integrands = self._integrands(coefficients)
        weights = np.exp(integrands - np.logaddexp.reduce(integrands, axis=1)[:, None])
        moved = deviation * self._repeated(nodes)
        slope, observed, fisher = self._bends(eta[:, None] + moved)
        share = self._repeated(weights)
        bend = share * (fisher if expected else observed)
        size = len(coefficients)
        complete = np.zeros((size, size))
        complete[:-1, :-1] = (self.matrix * bend.sum(axis=1)[:, None]).T @ self.matrix
        complete[:-1, -1] = complete[-1, :-1] = self.matrix.T @ (bend * moved).sum(axis=1)
        complete[-1, -1] = float((bend * moved**2).sum())
        if not expected:
            # The second derivative of the linear predictor by the log deviation.
            complete[-1, -1] -= float((share * slope * moved).sum())
        scores = np.empty((*nodes.shape, size))
        for index in range(size - 1):
            scores[:, :, index] = np.add.reduceat(slope * self.matrix[:, [index]], self.begins, axis=0)
        scores[:, :, -1] = np.add.reduceat(slope * moved, self.begins, axis=0)
        mean = np.einsum("jk,jkp->jp", weights, scores)
        squares = np.einsum("jk,jkp,jkq->pq", weights, scores, scores, optimize=True)
        return mean.sum(axis=0), complete, squares - mean.T @ mean
