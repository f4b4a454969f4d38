r"""A finite distribution of the privacy loss, and its moment generating function on a vertical line.

The composition of :math:`n` such distributions has the :math:`n`-th power of it; nothing else depends on
:math:`n`.

Arrays may have more axes before the last one: then they hold several distributions of so many losses side by
side, and what is one number for a distribution is an array over those axes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT

__all__ = ["DiscreteLoss", "Ray", "Rings", "Tilted"]

_Array = NDArray[np.float64]

_FEW: Final = 32
"""Roundings in one entry of a sum, with room: an elementary function, its argument, two products."""


_CAPS: Final = np.array([[1.0], [2.2], [3.6]])
"""Caps y below two pi, for `Tilted.decay`."""
_MINIMUM: Final = (1 - np.cos(_CAPS)) / _CAPS**2 * (1 - 1e-9)


class Ray(NamedTuple):
    r"""The function on :math:`c + i t_l`, :math:`t_l = l h`: :math:`\phi = e^{K + i t m} (1 + D)`.

    ``log`` is :math:`\log(1 + D)`, ``size`` is :math:`|1 + D|` and ``error`` bounds the error of :math:`D`.
    """

    log_total: _Array
    log_total_error: _Array
    mean: _Array
    log: NDArray[np.complex128]
    size: _Array
    error: _Array


class Rings(NamedTuple):
    """Half-widths of intervals of losses, rising, and where among them each cap has that of each time."""

    halves: _Array
    indices: NDArray[np.intp]

    @classmethod
    def of(cls, times: _Array) -> Rings:
        """Return the intervals in which losses turn by no more than a cap up to a time."""
        halves, indices = np.unique((0.5 - 1e-9) * _CAPS / times, return_inverse=True)
        return cls(halves, indices.reshape(len(_CAPS), len(times)))


@dataclass(frozen=True, slots=True)
class DiscreteLoss:
    """Losses with masses; what is missing to one is the mass of an infinite loss, or was dropped.

    Parameters
    ----------
    loss : ndarray
    log_mass : ndarray
        Natural logarithms.
    infinite : float
        Mass of an infinite loss; a column for distributions that are side by side.
    """

    loss: _Array
    log_mass: _Array
    infinite: Any

    def log_moments(self, tilts: _Array) -> _Array:
        """Return ``log E exp(c * loss)`` over the finite losses, along a last axis of real c."""
        exponents = tilts[:, None] * self.loss[..., None, :] + self.log_mass[..., None, :]
        top = exponents.max(axis=-1)
        return np.asarray(top + np.log(np.exp(exponents - top[..., None]).sum(axis=-1)))

    def log_profile(self, epsilon: float) -> float:
        """Return an upper bound on ``log E(1 - exp(epsilon - loss))_+``, of one run discretised from above.

        Of a distribution made by `Bins.split`, no composition has smaller divergences than that of the pair.

        Parameters
        ----------
        epsilon : float
            Any real number.
        """
        gap = self.loss - epsilon + 2 * UNIT * (np.abs(self.loss) + abs(epsilon))
        counted = (gap > 0) & np.isfinite(self.log_mass)
        logs = self.log_mass[counted] + np.log(-np.expm1(-gap[counted]))
        if self.infinite > 0:
            logs = np.append(logs, math.log(self.infinite))
        if not len(logs):
            return -math.inf
        top = float(logs.max())
        total = top + math.log(float(np.exp(logs - top).sum()))
        return min(0.0, total + UNIT * (len(logs) + 64 + 8 * abs(top)))

    def tilted(self, c: float) -> Tilted:
        """Return the distribution re-weighted by ``exp(c * loss)``."""
        exponents = c * self.loss + self.log_mass
        top = exponents.max(axis=-1)
        weights = np.exp(exponents - top[..., None])
        total = weights.sum(axis=-1)
        weights /= total[..., None]
        log_total = top + np.log(total)
        # An entry of no weight may have a log mass of minus infinity.
        error = np.where(weights > 0, np.abs(c * self.loss) + np.abs(self.log_mass), 0.0)
        error = 2 * UNIT * (error + (np.abs(top) + np.abs(log_total) + _FEW)[..., None])
        return Tilted(self.loss, weights, log_total, error, _mean(weights, error))


@dataclass(frozen=True, slots=True)
class Tilted:
    """A distribution of the loss re-weighted by ``exp(c * loss)``, at one c.

    Parameters
    ----------
    loss : ndarray
    weights : ndarray
        Add up to 1.
    log_total : ndarray
        Log of what the masses added up to before they were divided by it.
    weight_error : ndarray
        Bounds on the relative errors of the weights.
    log_total_error : ndarray
    """

    loss: _Array
    weights: _Array
    log_total: _Array
    weight_error: _Array
    log_total_error: _Array

    def mean(self) -> _Array:
        """Return the mean of the loss, up to round-off."""
        return _mean(self.weights, self.loss)

    def variance(self) -> _Array:
        """Return the variance of the loss, up to round-off."""
        mean = _mean(self.weights, self.loss)
        return _mean(self.weights, (self.loss - mean[..., None]) ** 2)

    def decay(self, rings: Rings) -> _Array:
        r"""Return, for each time T, a rate r with :math:`|\phi(c + it)| \le e^{-r t^2} \phi(c)` up to T.

        Notes
        -----
        With L and L' independent and tilted, :math:`|\phi(c + it)/\phi(c)|^2 = 1 - E(1 - \cos t(L - L'))`.
        As :math:`(1 - \cos y)/y^2` is positive and falls up to :math:`2\pi`, it is at least its value k at a
        cap y wherever :math:`|t(L - L')| \le y`. That holds for :math:`t \le T` if both losses lie in one
        interval C of length :math:`y/T`, so :math:`r = k\,P(C)^2\,Var(L | C)` will do.
        """
        weights, count = np.atleast_2d(self.weights), len(rings.halves) + 1
        loss = np.atleast_2d(self.loss)
        loss = loss - _medians(loss, weights)[:, None]
        # Each loss counts from the first half-width on that holds it.
        first = np.searchsorted(rings.halves, np.abs(loss)) + count * np.arange(len(loss))[:, None]
        mass, mean, square = (
            np.cumsum(np.bincount(first.ravel(), of.ravel(), count * len(loss)).reshape(-1, count), axis=-1)
            for of in (weights, weights * loss, weights * loss * loss)
        )
        # P(C)**2 Var(L | C), less what the sums may have lost.
        variances = np.maximum(mass * square - mean * mean - 2.0**-40 * square[:, -1:], 0.0)
        rates = (_MINIMUM * variances[:, rings.indices]).max(axis=1)
        return np.asarray(rates.reshape(*self.loss.shape[:-1], -1))

    def moves(self) -> _Array:
        """Return the mean distance of the loss from its mean, rounded up."""
        distance = np.abs(self.loss - _mean(self.weights, self.loss)[..., None])
        return _mean(self.weights * distance, 1 + self.weight_error) * (1 + 1e-9)

    def sizes(self, step: float, count: int) -> _Array:
        r"""Bound :math:`|\phi(c + it)|/\phi(c)` up to the middles between ``step * l``, l below ``count``.

        Notes
        -----
        With the mean m of the tilted loss it is :math:`|E e^{it(L - m)}|`, which from one of these times to
        the next middle moves by no more than half a step times :math:`E|L - m|`.
        """
        ray = self.ray(step, count)
        near = ray.size + ray.error + (0.5 * step * self.moves())[..., None]
        return np.asarray(np.minimum(near * (1 + 1e-9), 1.0))

    def ray(self, step: float, count: int) -> Ray:
        r"""Return the moment generating function at ``c + 1j * step * l`` for l below ``count``.

        Notes
        -----
        With :math:`l = l_1 k + l_2` the points factor, so that all are one matrix product of two tables of
        about :math:`\sqrt{count}` rows. The tables hold :math:`e^{i\theta} - 1`, and
        :math:`e^{i(\theta + \eta)} - 1 = A + B + AB`: the error of :math:`D` is then a few roundings, one for
        each term of the sum, of :math:`t\,E|L - m|` and not of 1.
        """
        mean = _mean(self.weights, self.loss)
        weights, losses = self.weights[..., None, :], self.loss - mean[..., None]
        inner = max(1, math.isqrt(count - 1) + 1)
        outer = -(-count // inner)
        slow = _turns(step * inner * losses, outer) * weights
        fast = np.swapaxes(_turns(step * losses, inner), -1, -2)
        change = slow @ fast
        change += slow.sum(axis=-1)[..., None]
        change += weights @ fast
        flat = change.reshape(*mean.shape, -1)[..., :count]
        flat[flat == -1] += UNIT  # its logarithm must exist; the error allows for it
        moves = self.weights * np.abs(losses)
        rate = 8 * UNIT * (losses.shape[-1] + _FEW) * moves.sum(axis=-1) + 4 * _mean(moves, self.weight_error)
        error = rate[..., None] * (step * np.arange(count, dtype=float))
        return Ray(self.log_total, self.log_total_error, mean, np.log1p(flat), np.abs(1 + flat), error)


def _mean(weights: _Array, values: _Array) -> _Array:
    return np.asarray((weights * values).sum(axis=-1))


def _medians(loss: _Array, weights: _Array) -> _Array:
    """Return about the median of each row."""
    order = np.argsort(loss, axis=-1)
    sums = np.cumsum(np.take_along_axis(weights, order, -1), axis=-1)
    rank = np.minimum((sums < 0.5).sum(axis=-1), loss.shape[-1] - 1)[:, None]
    return np.asarray(np.take_along_axis(loss, np.take_along_axis(order, rank, -1), -1)[:, 0])


def _turns(angle: _Array, count: int) -> NDArray[np.complex128]:
    """Return ``exp(1j * l * angle) - 1`` for l below ``count``, along the axis before the last one.

    A row is put together from those of the powers of two in l, of which the sines are taken: no more than
    six roundings for each, of the size of its angle.
    """
    table = np.empty((*angle.shape[:-1], count, angle.shape[-1]), complex)
    table[..., 0, :] = 0
    done = 1
    while done < count:
        power = _turn(done * angle)[..., None, :]
        last = min(2 * done, count)
        before, rows = table[..., : last - done, :], table[..., done:last, :]
        np.multiply(before, power, out=rows)
        rows += before
        rows += power
        done = last
    return table


def _turn(angle: _Array) -> NDArray[np.complex128]:
    """Return ``exp(1j * angle) - 1`` without cancellation."""
    half = np.sin(0.5 * angle)
    turned = np.empty(angle.shape, complex)
    turned.real = -2 * half * half
    turned.imag = np.sin(angle)
    return turned
