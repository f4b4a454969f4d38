r"""A finite law of the privacy loss, and its moment generating function on a vertical line.

The composition of :math:`n` such laws has the :math:`n`-th power of it; nothing else depends on :math:`n`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT

__all__ = ["Atoms", "Ray", "Tilted"]

_Array = NDArray[np.float64]

_FEW: Final = 32
"""Roundings in one entry of a sum, with room: an elementary function, its argument, two products."""


_CAPS: Final = tuple((cap, (1 - math.cos(cap)) / cap**2 * (1 - 1e-9)) for cap in (1.0, 2.2, 3.6))
"""Caps y below two pi, with (1 - cos y) / y**2."""


class Ray(NamedTuple):
    r"""The function on :math:`c + i t_l`, :math:`t_l = l h`: :math:`\phi = e^{K + i t m} (1 + D)`.

    ``log`` is :math:`\log(1 + D)`, ``size`` is :math:`|1 + D|` and ``error`` bounds the error of :math:`D`.
    """

    log_total: float
    log_total_error: float
    mean: float
    log: NDArray[np.complex128]
    size: _Array
    error: _Array


@dataclass(frozen=True, slots=True)
class Atoms:
    """Losses with masses; what is missing to one is the mass of an infinite loss, or was dropped.

    Parameters
    ----------
    loss : ndarray
    log_mass : ndarray
        Natural logarithms.
    infinite : float
        Mass of an infinite loss.
    """

    loss: _Array
    log_mass: _Array
    infinite: float

    def log_moments(self, tilts: _Array) -> _Array:
        """Return ``log E exp(c * loss)`` over the finite losses, for an array of real c."""
        exponents = np.multiply.outer(tilts, self.loss) + self.log_mass
        top = exponents.max(axis=-1)
        return np.asarray(top + np.log(np.exp(exponents - top[:, None]).sum(axis=-1)))

    def tilted(self, c: float) -> Tilted:
        """Return the law re-weighted by ``exp(c * loss)``."""
        exponents = c * self.loss + self.log_mass
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(weights.sum())
        weights /= total
        log_total = top + math.log(total)
        # An entry of no weight may have a log mass of minus infinity.
        error = np.where(weights > 0, np.abs(c * self.loss) + np.abs(self.log_mass), 0.0)
        error = 2 * UNIT * (error + (abs(top) + abs(log_total) + _FEW))
        return Tilted(self.loss, weights, log_total, error, float(weights @ error))


@dataclass(frozen=True, slots=True)
class Tilted:
    """A law of the loss re-weighted by ``exp(c * loss)``, at one c.

    Parameters
    ----------
    loss : ndarray
    weights : ndarray
        Add up to 1.
    log_total : float
        Log of what the masses added up to before they were divided by it.
    weight_error : ndarray
        Bounds on the relative errors of the weights.
    log_total_error : float
    """

    loss: _Array
    weights: _Array
    log_total: float
    weight_error: _Array
    log_total_error: float

    def variance(self) -> float:
        """Return the variance of the loss, up to round-off."""
        mean = float(self.weights @ self.loss)
        return float(self.weights @ (self.loss - mean) ** 2)

    def decay(self, times: _Array) -> _Array:
        r"""Return, for each time T, a rate r with :math:`|\phi(c + it)| \le e^{-r t^2} \phi(c)` up to T.

        Notes
        -----
        With L and L' independent and tilted, :math:`|\phi(c + it)/\phi(c)|^2 = 1 - E(1 - \cos t(L - L'))`.
        As :math:`(1 - \cos y)/y^2` is positive and falls up to :math:`2\pi`, it is at least its value k at a
        cap y wherever :math:`|t(L - L')| \le y`. That holds for :math:`t \le T` if both losses lie in one
        interval C of length :math:`y/T`, so :math:`r = k\,P(C)^2\,Var(L | C)` will do.
        """
        order = np.argsort(self.loss)
        losses, weights = self.loss[order], self.weights[order]
        sums = np.concatenate([[0.0], np.cumsum(weights)])
        losses = losses - losses[min(int(np.searchsorted(sums[1:], 0.5)), len(losses) - 1)]
        first = np.concatenate([[0.0], np.cumsum(weights * losses)])
        second = np.concatenate([[0.0], np.cumsum(weights * losses * losses)])
        rates = np.zeros(len(times))
        for cap, least in _CAPS:
            half = (0.5 - 1e-9) * cap / times
            low, high = np.searchsorted(losses, -half, "left"), np.searchsorted(losses, half, "right")
            mass, mean, square = (total[high] - total[low] for total in (sums, first, second))
            # P(C)**2 Var(L | C), less what the differences of sums may have lost.
            spread = mass * square - mean * mean - 2.0**-40 * second[-1]
            rates = np.maximum(rates, least * spread)
        return rates

    def ray(self, step: float, count: int) -> Ray:
        r"""Return the moment generating function at ``c + 1j * step * l`` for l below ``count``.

        Notes
        -----
        With :math:`l = l_1 k + l_2` the points factor, so that all are one matrix product of two tables of
        about :math:`\sqrt{count}` rows. The tables hold :math:`e^{i\theta} - 1`, and
        :math:`e^{i(\theta + \eta)} - 1 = A + B + AB`: the error of :math:`D` is then a few roundings, one for
        each term of the sum, of :math:`t\,E|L - m|` and not of 1.
        """
        mean = float(self.weights @ self.loss)
        kept = self.weights > 0
        weights, losses = self.weights[kept], self.loss[kept] - mean
        inner = max(1, math.isqrt(count - 1) + 1)
        outer = -(-count // inner)
        slow = _turn(np.multiply.outer(step * inner * np.arange(outer), losses)) * weights
        fast = _turn(np.multiply.outer(losses, step * np.arange(inner)))
        change = slow @ fast
        change += slow.sum(axis=1)[:, None]
        change += weights @ fast
        flat = change.ravel()[:count]
        flat[flat == -1] += UNIT  # its logarithm must exist; the error allows for it
        moves = weights * np.abs(losses)
        rate = 8 * UNIT * (len(losses) + _FEW) * float(moves.sum()) + 4 * float(
            moves @ self.weight_error[kept]
        )
        error = rate * (step * np.arange(count, dtype=float))
        return Ray(self.log_total, self.log_total_error, mean, np.log1p(flat), np.abs(1 + flat), error)


def _turn(angle: _Array) -> NDArray[np.complex128]:
    """Return ``exp(1j * angle) - 1`` without cancellation."""
    half = np.sin(0.5 * angle)
    turned = np.empty(angle.shape, complex)
    turned.real = -2 * half * half
    turned.imag = np.sin(angle)
    return turned
