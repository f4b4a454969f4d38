"""Logistic regression whose objective, not its gradient, is noisy: one noisy linear term, then any solver."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Self, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from sfumato import _check
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.sampling.rounded_noise import normal, rounded
from sfumato.privacy.calibration import analytic_gaussian_stddev
from sfumato.privacy.leaves.declared import ApproximateDP
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["ObjectivePerturbation"]

_Array = NDArray[np.float64]

_CURVATURE: Final = 0.25
"""The share of epsilon for the determinant, which gets 1 at most."""
_CLOSENESS: Final = 0.01
"""The share of epsilon and delta for a minimum that is approximate."""
_GRADIENT: Final = 1e-6
_BITS: Final = 40
_STEPS: Final = 10_000
_SURE: Final = 1e-3


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectivePerturbation:
    r"""Approximate minima perturbation for logistic regression with rows of bounded norm.

    Made by `calibrated`.

    Parameters
    ----------
    data_norm : float
        :math:`R`: longer rows are shortened to this L2 norm.
    ridge : float
        :math:`\Lambda`, of the penalty :math:`\Lambda\|w\|^2/2` beside the sum over all rows.
    stddev : float
        :math:`\sigma`, of the noise in the linear term.
    blur : float
        Standard deviation of the noise on the weights, which hides that the minimum is approximate.
    epsilon, delta : float
        Of the exact minimum, and ``near_epsilon``, ``near_delta`` of the rest.

    Notes
    -----
    Guarantee: (epsilon + near_epsilon, delta + near_delta)-DP under add/remove of one row, for real noise: it
    is drawn exactly on a grid of :math:`2^{-40}` standard deviations, but the weights that solve for it are
    floats (``float_safe_`` is False).

    *Proof.* The minimum w of :math:`\sum_i \ell_i + \Lambda\|w\|^2/2 + b \cdot w` has :math:`b = -\sum_i
    \nabla\ell_i(w) - \Lambda w`, one to one as the objective is strongly convex and smooth. So its density is
    that of the normal :math:`b(w)` times the determinant of :math:`H(w) + \Lambda`, H the Hessian of the sum.
    A further row x with :math:`\|x\| \le R` adds to H a matrix of rank one and norm at most :math:`R^2/4`, so
    the determinants' ratio is between 1 and :math:`1 + R^2/4\Lambda = e^{\epsilon_3}`. And it moves b by
    :math:`c(w) x/\|x\|`, :math:`|c| \le R`. With :math:`s` the component of b along x, normal on the dataset
    that w is drawn from, the loss of the densities of b is at most :math:`(2|s|R + R^2)/2\sigma^2`. That
    exceeds t, for :math:`t \ge R^2/2\sigma^2`, with twice the probability of the Gaussian mechanism's loss
    :math:`(2sR + R^2)/2\sigma^2`; integrating the tail, :math:`\delta(\epsilon) \le 2\delta_G(\epsilon -
    \epsilon_3)` for :math:`\epsilon - \epsilon_3 \ge R^2/2\sigma^2`, in both directions.

    The weights that are found have a gradient of norm at most :math:`\gamma = 10^{-6}\max(1, R,
    10^{-6}\sigma)`, far above what floats resolve in sums of that size, so they are within
    :math:`\gamma/\Lambda` of the minimum. Given the minimum, telling them with normal noise is the Gaussian
    mechanism for a shift of :math:`2\gamma/\Lambda`. The two compose. Condition: fewer than a billion rows,
    so that floats can hold a gradient of :math:`\gamma/2`; Newton's steps with backtracking reach it, as the
    objective is smooth and strongly convex.

    References
    ----------
    Chaudhuri, Monteleoni, Sarwate (2011), objective perturbation; Kifer, Smith, Thakurta (2012), Gaussian
    noise; Iyengar, Near, Song, Thakkar, Thakurta, Wang, "Towards practical differentially private convex
    optimization" (IEEE S&P 2019), approximate minima; Redberg, Koskela, Wang, "Improving the privacy and
    practicality of objective perturbation for differentially private linear learners" (NeurIPS 2023), the
    comparison with the Gaussian mechanism. The proof is given here.

    Examples
    --------
    >>> solver = ObjectivePerturbation.calibrated(epsilon=1.0, delta=1e-6, data_norm=2.0)
    >>> solver.privacy_loss.epsilon(1e-6) <= 1.0, round(solver.stddev / 2.0, 2)
    (True, 5.82)
    """

    data_norm: float
    ridge: float
    stddev: float
    blur: float
    epsilon: float
    delta: float
    near_epsilon: float
    near_delta: float

    @classmethod
    def calibrated(cls, *, epsilon: float, delta: float, data_norm: float, ridge: float = 0.0) -> Self:
        """Return the solver that meets (epsilon, delta).

        Parameters
        ----------
        epsilon, delta : float
            Delta must be positive.
        data_norm : float
        ridge : float
            The minimum strength of the penalty that is wanted; more is taken where privacy asks for it.
        """
        epsilon = _check.positive("epsilon", epsilon)
        delta = _check.unit_interval("delta", delta, "use 1e-6, say: well below one over the number of rows")
        norm = _check.positive("data_norm", data_norm)
        near = (epsilon * _CLOSENESS, delta * _CLOSENESS)
        exact = (epsilon * (1 - 2 * _CLOSENESS), delta * (1 - 2 * _CLOSENESS))
        needed = norm**2 / 4 / math.expm1(min(1.0, _CURVATURE * exact[0])) * (1 + 1e-9)
        penalty = max(needed, _check.non_negative("ridge", ridge))
        left = (exact[0] - math.log1p(norm**2 / 4 / penalty)) * (1 - 1e-9)
        stddev = analytic_gaussian_stddev(sensitivity=norm, epsilon=left, delta=exact[1] / 2)
        stddev = max(stddev, norm / math.sqrt(2 * left)) * (1 + 1e-9)
        shift = 2 * _gradient(norm, stddev) / penalty
        blur = analytic_gaussian_stddev(sensitivity=shift, epsilon=near[0], delta=near[1]) * (1 + 1e-9)
        return cls(
            data_norm=norm,
            ridge=penalty,
            stddev=stddev,
            blur=blur,
            epsilon=exact[0],
            delta=exact[1],
            near_epsilon=near[0],
            near_delta=near[1],
        )

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one fit."""
        return ApproximateDP(self.epsilon, self.delta) + ApproximateDP(self.near_epsilon, self.near_delta)

    def fit(self, rows: _Array, positive: NDArray[np.bool_], source: RandomSource) -> _Array:
        """Return noisy weights.

        Parameters
        ----------
        rows : float64 array of shape (n, entries)
        positive : bool array of shape (n,)
        source : RandomSource

        Returns
        -------
        float64 array of shape (entries,)
        """
        rows = self.shortened(rows)
        linear = _normals(self.stddev, rows.shape[1], source)
        weights = self._minimum(rows, positive.astype(np.float64), linear)
        return weights + _normals(self.blur, rows.shape[1], source)

    def shortened(self, rows: _Array) -> _Array:
        """Return rows, those that are longer than the norm shortened to it."""
        sizes = np.sqrt((rows**2).sum(axis=1, keepdims=True))
        # A billionth less, so that rounding leaves no row longer than the norm.
        return np.asarray(rows * np.minimum(1.0, self.data_norm * (1 - 1e-9) / np.maximum(sizes, 1e-300)))

    def _minimum(self, rows: _Array, answers: _Array, linear: _Array) -> _Array:
        """Return weights at which the gradient is small enough, by damped Newton steps."""
        weights = np.zeros(rows.shape[1])
        enough = _gradient(self.data_norm, self.stddev) / 2

        def objective(at: _Array) -> float:
            scores = rows @ at
            losses = np.logaddexp(0.0, scores) - answers * scores
            return float(losses.sum() + self.ridge / 2 * (at @ at) + linear @ at)

        for _ in range(_STEPS):
            chances = expit(rows @ weights)
            gradient = rows.T @ (chances - answers) + self.ridge * weights + linear
            if (gradient**2).sum() <= enough**2:
                break
            hessian = (rows * (chances * (1 - chances))[:, None]).T @ rows
            step = np.asarray(np.linalg.solve(hessian + self.ridge * np.eye(len(weights)), gradient))
            weights = weights - step * _length(objective, weights, step, float(gradient @ step))
        return weights


def _gradient(norm: float, stddev: float) -> float:
    """Return the norm of a gradient that is small enough, and that floats still distinguish from 0."""
    return _GRADIENT * max(1.0, norm, _GRADIENT * stddev)


def _length(objective: Callable[[_Array], float], weights: _Array, step: _Array, fall: float) -> float:
    """Return how much of a Newton step lowers the objective by a quarter of what its slope says."""
    length, here = 1.0, objective(weights)
    while fall > _SURE and length > 1e-9 and objective(weights - length * step) > here - length * fall / 4:
        length /= 2
    return length


def _normals(stddev: float, size: int, source: RandomSource) -> _Array:
    """Return normal numbers, each rounded to a grid of a 2^40th of the standard deviation."""
    steps = [rounded(normal, Fraction(1 << _BITS), 1 << 62, source) for _ in range(size)]
    return np.asarray(np.ldexp(np.array(steps, np.float64), -_BITS) * stddev)
