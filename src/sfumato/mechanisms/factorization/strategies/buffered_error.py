"""The error of buffered Toeplitz strategies for prefix sums in closed form, and the best buffers."""

from __future__ import annotations

import math
from typing import Any, Final, final

import numpy as np
import scipy
from numpy.typing import NDArray

from sfumato.mechanisms.factorization.strategies.integer_strategy import Array
from sfumato.mechanisms.factorization.strategies.participation import Participation

__all__ = ["BufferedError", "best_buffers"]

_STEP: Final = 1e-30
_ENOUGH: Final = 1e-3
_NOTHING: Final = 1e-7
_MOST: Final = 10

Values = NDArray[Any]


@final
class BufferedError:
    r"""The log of squared sensitivity times squared error, at the gaps of decays from 1.

    Parameters
    ----------
    steps : int
    participation : Participation
        Whose sensitivity, of the earliest pattern.
    objective : {"max", "mean"}

    Notes
    -----
    *Two sums of decays.* As a function of :math:`z = 1/x`, the series is :math:`1 + \sum_j \omega_j/(z -
    \lambda_j) = \prod_j (z - \theta_j)/(z - \lambda_j)`, and its inverse is of the same form with
    :math:`\theta` and :math:`\lambda` exchanged. All :math:`\omega` are positive if and only if
    :math:`\lambda_1 > \theta_1 > \lambda_2 > \dots > \theta_d`. So both are given by such numbers, here by
    the logits of :math:`1 - \lambda_1 < 1 - \theta_1 < \dots`: the first, and the logs of the rises to the
    next ones. With :math:`\hat\omega` for the inverse's weights, answers weigh noise of age t by
    :math:`\prod \frac{1 - \lambda_j}{1 - \theta_j} + \sum_j \beta_j \theta_j^t`, :math:`\beta_j =
    -\hat\omega_j/(1 - \theta_j)`.

    *Sums of squares* of either are sums of :math:`\sum_{t<m} q^t = (1 - q^m)/(1 - q)` for products q of two
    decays. For a unit that takes part again and again, the sum of its columns has the weights :math:`\omega_j
    A_{sj}` after its s-th part, :math:`A_{sj} = \sum_{l \le s} \lambda_j^{lb}`; sums of :math:`A_s A_s^T`
    over s are found by doubling, without a difference. Gradients are complex steps, exact to float accuracy.

    References
    ----------
    Dvijotham, McMahan, Pillutla, Steinke, Thakurta (2024), "Efficient and near-optimal noise generation for
    streaming differential privacy", the inverse; McMahan, Xu, Zhang (2024), "A hassle-free algorithm for
    strong differential privacy in federated learning systems", closed forms; Squire, Trapp (1998), "Using
    complex variables to estimate derivatives of real functions".

    Examples
    --------
    >>> from sfumato.mechanisms.factorization.strategies.participation import ONCE
    >>> decays, weights = best_buffers(BufferedError(1024, ONCE, "max"), 3)
    >>> decays.shape, 0.4 < float(weights.sum()) < 0.5
    ((3,), True)
    """

    def __init__(self, steps: int, participation: Participation, objective: str) -> None:
        self._steps, self._mean = steps, objective == "mean"
        self._parts, self._gap = participation.max_steps(steps), participation.separation

    def __call__(self, free: Array) -> tuple[float, Array]:
        """Return the log of the squared error, and its gradient in the free parameters."""
        logs = self._log(free + 1j * _STEP * np.eye(len(free)))
        return float(logs[0].real), logs.imag / _STEP

    def start(self, count: int) -> Array:
        """Return free parameters at which decays go evenly, in the log, from all steps to one."""
        first = -math.log(self._steps + 1.0)
        rise = (0.5 - first) / (2 * count - 1)
        return np.concatenate([[first], np.full(2 * count - 1, math.log(rise))])

    def bounds(self, count: int) -> list[tuple[float, float]]:
        """Return bounds within which no sum loses its digits."""
        return [(-math.log(self._steps + 1.0) - 5, 5.0), *[(-5.0, 3.0)] * (2 * count - 1)]

    def _log(self, free: Values) -> Any:
        decays, inverse = _decays(free)
        squares = self._squared_sensitivity(decays, decays.weights(inverse))
        return np.log(squares) + np.log(self._squared_error(inverse, decays))

    def _squared_sensitivity(self, decays: _Decays, weights: Values) -> Values:
        """Return the squared norm of the sum of a unit's columns."""
        last, sums, squares = _repeated(np.power(decays.values, self._gap), self._parts - 1)
        pairs, tail = _outer(weights, weights), self._steps - (self._parts - 1) * self._gap
        # What earlier columns add to the first entry of each later one.
        carried = weights * np.power(decays.values, self._gap - 1)
        firsts = 2 * (carried * sums).sum(axis=-1) + (_outer(carried, carried) * squares).sum(axis=(-2, -1))
        between = squares * decays.pair_sums(self._gap - 1)
        ending = _outer(last, last) * decays.pair_sums(tail - 1)
        return np.asarray(self._parts + firsts + (pairs * (between + ending)).sum(axis=(-2, -1)))

    def _squared_error(self, inverse: _Decays, decays: _Decays) -> Values:
        """Return the squared error of the last sum, or the mean of all."""
        n = self._steps
        settled = np.prod(decays.gaps / inverse.gaps, axis=-1)
        decaying = -inverse.weights(decays) / inverse.gaps
        single, double = inverse.sums(n), inverse.pair_sums(n)
        if self._mean:
            # The sum over t of (n - t) q**t is (n - q (1 - q**n)/(1 - q))/(1 - q).
            single = (n - inverse.values * single) / (n * inverse.gaps)
            double = (n - _outer(inverse.values, inverse.values) * double) / (n * inverse.pair_gaps())
        total = (n + 1) / 2 if self._mean else n
        crossed = 2 * settled * (decaying * single).sum(axis=-1)
        decayed = (_outer(decaying, decaying) * double).sum(axis=(-2, -1))
        return np.asarray(total * settled**2 + crossed + decayed)


class _Decays:
    """Decays, from the logits of what they lack to 1: near 0 and near 1 alike with all their digits.

    The last axis counts them; others are for independent evaluations.
    """

    def __init__(self, logits: Values) -> None:
        self._logits = logits
        self.values, self.gaps = 1 / (1 + np.exp(logits)), 1 / (1 + np.exp(-logits))

    def weights(self, inverse: _Decays) -> Values:
        """Return the weights of the decays in the quotient of the inverse's product and theirs."""
        own = self._above(self)
        each = np.arange(own.shape[-1])
        own[..., each, each] = 1.0
        return np.asarray(np.prod(self._above(inverse) / own, axis=-1))

    def sums(self, terms: int) -> Values:
        """Return the sums of the first powers."""
        return np.asarray((1 - np.power(self.values, terms)) / self.gaps)

    def pair_gaps(self) -> Values:
        """Return what products of two decays lack to 1."""
        return self.gaps[..., :, np.newaxis] + self.gaps[..., np.newaxis, :] - _outer(self.gaps, self.gaps)

    def pair_sums(self, terms: int) -> Values:
        """Return the sums of the first powers of the products of two decays."""
        return np.asarray((1 - np.power(_outer(self.values, self.values), terms)) / self.pair_gaps())

    def _above(self, other: _Decays) -> Values:
        """Return each decay less each of another's."""
        rises = self._logits[..., :, np.newaxis] - other._logits[..., np.newaxis, :]
        return np.asarray(-_outer(self.values, other.gaps) * np.expm1(rises))


def best_buffers(error: BufferedError, count: int | None) -> tuple[Array, Array]:
    """Return decays and weights with nearly the smallest error, adding one buffer after the other.

    Parameters
    ----------
    error : BufferedError
    count : int or None
        How many buffers; None stops with the one that lowers the error by less than a thousandth.
    """
    best, log = _descended(error, [error.start(1)])
    gain = 1.0
    for buffers in range(2, 1 + (_MOST if count is None else count)):
        one_beyond = np.concatenate([best, best[-1:], best[-1:]])
        if gain < _NOTHING:
            best = one_beyond
            continue
        found, lower = _descended(error, [_split(best), one_beyond, error.start(buffers)])
        # Squares fall by twice as much as errors.
        gain = (log - lower) / 2
        best, log = found, lower
        if count is None and gain < _ENOUGH:
            break
    decays, inverse = _decays(best)
    weights = decays.weights(inverse)
    return decays.values, weights * min(1.0, (1 - 1e-12) / weights.sum())


def _descended(error: BufferedError, starts: list[Array]) -> tuple[Array, float]:
    """Return the best of the minima near some starts, and the log of its squared error."""
    options: Any = {"maxiter": 300, "ftol": 1e-11, "gtol": 1e-8}
    climb: Any = scipy.optimize.minimize  # its stubs know no bounds beside a gradient
    best: Any = None
    for start in starts:
        bounds = error.bounds(len(start) // 2)
        found = climb(error, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        best = found if best is None or found.fun < best.fun else best
    return best.x, float(best.fun)


def _split(free: Array) -> Array:
    """Return parameters of one buffer more, between the two decays that lie farthest apart."""
    widest = 1 + int(np.argmax(free[1:]))
    thirds = np.full(3, free[widest] - math.log(3))
    return np.concatenate([free[:widest], thirds, free[widest + 1 :]])


def _decays(free: Values) -> tuple[_Decays, _Decays]:
    """Return the decays and those of the inverse, which alternate."""
    logits = np.cumsum(np.concatenate([free[..., :1], np.exp(free[..., 1:])], axis=-1), axis=-1)
    return _Decays(logits[..., 0::2]), _Decays(logits[..., 1::2])


def _outer(left: Values, right: Values) -> Values:
    return np.asarray(left[..., :, np.newaxis] * right[..., np.newaxis, :])


def _repeated(decays: Values, count: int) -> tuple[Values, Values, Values]:
    """Return ``A[count]`` of the notes, and the sums of ``A[s]`` and of its outer squares over s < count."""
    number, power = 0, np.ones_like(decays)  # decays**number
    # A[number - 1], and the sums for s < number.
    before, sums, squares = (
        np.zeros_like(decays),
        np.zeros_like(decays),
        np.zeros_like(_outer(decays, decays)),
    )
    for bit in f"{count:b}":
        # A[number + s] is A[number - 1] and decays**number times A[s].
        cross = _outer(before, power * sums)
        squares = squares * (1 + _outer(power, power)) + cross + np.swapaxes(cross, -1, -2)
        squares = squares + number * _outer(before, before)
        sums = sums + number * before + power * sums
        before, power, number = before + power * before, power * power, 2 * number
        if bit == "1":
            before = 1 + decays * before
            sums, squares = sums + before, squares + _outer(before, before)
            power, number = power * decays, number + 1
    return 1 + decays * before, sums, squares
