r"""Means over the loss of one pair, between bounds.

Let :math:`R = e^{-L} = dQ/dP`. A bin has P-mass a and Q-mass b, so that the mean of R in it, under P, is
:math:`b/a`. Of a function that is convex in R the mean over the bin is at least the value at :math:`b/a`
(Jensen), and at most that of the chord between the bin's ends; of a concave one the reverse. Both are off by
the square of the bin's width only.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.interval import Interval
from sfumato.privacy._outward import UNIT
from sfumato.privacy.pairs.bins import Bins, Mass, Points
from sfumato.privacy.pairs.derived import fine_cuts
from sfumato.privacy.pairs.discrete_loss import DiscreteLoss
from sfumato.privacy.pairs.pair import Pair

__all__ = ["log_moment", "loss_mean", "loss_variance"]

_Array = NDArray[np.float64]

_REACH: Final = 26.0
_FAR: Final = 38.0
_BINS: Final = 4000
_TILTS: Final = np.exp(np.linspace(-6.0, 12.0, 37))
_SLACK: Final = 1 + 1e-9
"""Outweighs every rounding in a bound that is negligible itself."""


class _Function(ABC):
    """A convex function of the loss, which is convex in R above one loss and concave in R below it."""

    @property
    @abstractmethod
    def bend(self) -> float:
        """That loss."""

    @abstractmethod
    def __call__(self, loss: _Array) -> _Array:
        """Evaluate it."""

    @abstractmethod
    def low(self, edge: float, log_q: float) -> float:
        """Bound the absolute mean over the outcomes below a loss, which have at most so much Q-mass."""

    @abstractmethod
    def high(self, edge: float, log_p: float, log_moments: _Array) -> float:
        """Bound it over those above a loss, from their P-mass and their moments at `_TILTS`."""


class _Loss(_Function):
    @property
    def bend(self) -> float:
        return -math.inf

    def __call__(self, loss: _Array) -> _Array:
        return loss

    def low(self, edge: float, log_q: float) -> float:
        # The mean of L is that of -L exp(L) under Q, and |L| exp(L) is at most 1/e for negative L.
        return max(_exp(log_q), max(0.0, edge) * _exp(log_q + edge))

    def high(self, edge: float, log_p: float, log_moments: _Array) -> float:
        # L is at most exp(cL) / (ce).
        return _exp(_minimum(log_moments - np.log(_TILTS) - 1)) + _exp(log_p) * max(0.0, -edge)


class _Square(_Function):
    """The square of the distance from a loss."""

    def __init__(self, centre: float) -> None:
        self._centre = centre

    @property
    def bend(self) -> float:
        # The second derivative in R is 2 (1 + L - m) / R**2.
        return self._centre - 1

    def __call__(self, loss: _Array) -> _Array:
        return np.asarray((loss - self._centre) ** 2)

    def low(self, edge: float, log_q: float) -> float:
        # Of (L - m)**2 exp(L) the only maximum below m is at m - 2; above m it rises.
        ends = (edge - self._centre) ** 2 * _exp(log_q + edge)
        return max(4 * _exp(log_q + self._centre - 2), ends)

    def high(self, edge: float, log_p: float, log_moments: _Array) -> float:
        # Above m, (L - m)**2 is at most 4 exp(c (L - m)) / (ce)**2.
        far = math.log(4) - 2 - 2 * np.log(_TILTS) + log_moments - _TILTS * self._centre
        return _exp(_minimum(far)) + _exp(log_p) * max(0.0, self._centre - edge) ** 2


def _minimum(logs: _Array) -> float:
    return float(np.nanmin(np.append(logs, np.inf)))


def _exp(log: float) -> float:
    return math.exp(log) * _SLACK if log < 700 else math.inf


def loss_mean(pair: Pair, *, swapped: bool) -> Interval:
    """Return bounds on the mean of the loss under the first distribution: the Kullback-Leibler divergence."""
    if pair.variance:
        return Interval(0.5 * pair.variance * (1 - 64 * UNIT), 0.5 * pair.variance)
    found = _mean(pair, _cut(pair, _REACH), _Loss(), swapped=swapped)
    return Interval(max(0.0, found.lower), max(0.0, found.upper), pair.tight)


def loss_variance(pair: Pair, *, swapped: bool) -> Interval:
    """Return bounds on the variance of the loss under the first distribution."""
    if pair.variance:
        return Interval(pair.variance * (1 - 64 * UNIT), pair.variance)
    cuts = _cut(pair, _REACH)
    mean = _mean(pair, cuts, _Loss(), swapped=swapped)
    if not math.isfinite(mean.upper - mean.lower):
        return Interval(0.0, math.inf, pair.tight)
    centre = 0.5 * (mean.lower + mean.upper)
    found = _mean(pair, cuts, _Square(centre), swapped=swapped)
    off = max(centre - mean.lower, mean.upper - centre) ** 2 * _SLACK
    return Interval(max(0.0, found.lower - off), max(0.0, found.upper), pair.tight)


def _cut(pair: Pair, reach: float) -> _Array:
    return fine_cuts(pair, reach, _BINS)


def _mean(pair: Pair, cuts: _Array, function: _Function, *, swapped: bool) -> Interval:
    """Return bounds on the mean of a function of the loss; infinity where there is an infinite loss."""
    with np.errstate(all="ignore"):
        bins = pair.bins(cuts, swapped=swapped)
        if bins.only_p > 0:
            return Interval(math.inf, math.inf)
        if not bins.whole:
            return Interval(-math.inf, math.inf)
        lower, upper = _inside(bins, function)
        left = right = 0.0
        if bins.low.log_q > -math.inf:
            left = function.low(float(bins.edges[0] + bins.edge_error[0]), bins.low.log_q) * _SLACK
        if bins.high.log_p > -math.inf:
            moments = pair.log_tail(_TILTS, cuts, swapped=swapped)
            edge = _last_loss(bins)
            right = function.high(edge, bins.high.log_p, moments) * _SLACK
    beyond = left + right
    return Interval(lower - (beyond if math.isfinite(beyond) else left), upper + beyond)


def _last_loss(bins: Bins) -> float:
    """Return a loss below all that lies beyond: the last edge, or the largest atom where there is none."""
    if len(bins.edges):
        return float(bins.edges[-1] - bins.edge_error[-1])
    return float((bins.atoms.loss - bins.atoms.loss_error).max(initial=0.0))


def _inside(bins: Bins, function: _Function) -> tuple[float, float]:
    """Bound the mean over the bins and the atoms."""
    points, left, right = bins.points, bins.edges[:-1], bins.edges[1:]
    at = np.clip(points.loss, left, right)
    ends = function(left), function(right)
    width = np.where(right > left, right - left, 1.0)
    span = -np.expm1(-width)
    fraction = np.clip(-np.expm1(np.minimum(left - at, 0.0)) / span, 0.0, 1.0)
    error = points.loss_error + bins.edge_error[:-1] + bins.edge_error[1:]
    error = error + 4 * UNIT * (np.abs(at) + np.abs(left) + np.abs(right))
    jensen, chord = function(at), ends[0] + fraction * (ends[1] - ends[0])
    off = _moved(function, at, points.loss_error + 2 * UNIT * np.abs(at))
    off = np.maximum(off, _moved(function, left, error)) + _moved(function, right, error)
    off = off + (2 * error / span + 8 * UNIT) * np.abs(ends[1] - ends[0])
    bend = function.bend
    convex, concave = left - error >= bend, right + error <= bend
    # A bin at the bend: a convex function of the loss between the greater end and its mirror image.
    top = np.maximum(*ends)
    bottom = 2 * function(0.5 * (left + right)) - top
    low = np.where(convex, jensen, np.where(concave, chord, bottom)) - off
    high = np.where(convex, chord, np.where(concave, jensen, top)) + off
    atoms = bins.atoms
    value = function(atoms.loss)
    loose = _moved(function, atoms.loss, atoms.loss_error + 2 * UNIT * np.abs(atoms.loss))
    both = points.followed_by(atoms)
    return (
        _weighted(both, np.concatenate([low, value - loose]), -1),
        _weighted(both, np.concatenate([high, value + loose]), 1),
    )


def _moved(function: _Function, loss: _Array, error: _Array) -> _Array:
    """Bound how much a convex function changes within an error of its argument."""
    value = function(loss)
    change = np.maximum(np.abs(function(loss + error) - value), np.abs(function(loss - error) - value))
    return np.asarray(change + 4 * UNIT * np.abs(value))


def _weighted(points: Points, values: _Array, sign: int) -> float:
    """Return the sum of masses times values, rounded up for the sign 1 and down for -1."""
    mass = np.exp(points.log_p)
    terms = np.where(mass > 0, mass * values, 0.0)
    slack = float((np.abs(terms) * (points.mass_error + 16 * UNIT)).sum()) * _SLACK
    # What is no float has less than 1e-300 in all.
    total = math.fsum(terms.tolist())
    return total + sign * (slack + 4 * UNIT * abs(total) + 1e-290 * len(terms))


def log_moment(pair: Pair, order: float, *, swapped: bool) -> Interval:
    r"""Return bounds on :math:`\log E_P e^{\lambda L}`, of the finite losses only where lambda is negative.

    Notes
    -----
    For :math:`\lambda > 0` this is a convex falling function of R, of which merging and splitting bins bound
    the mean as they do for hockey-stick divergences. For :math:`-1 \le \lambda < 0` it is concave and rises,
    so that they are exchanged; outcomes below the bins, of P-mass a and Q-mass b, then add at most
    :math:`a^{1+\lambda} b^{-\lambda}` (Hölder). For :math:`\lambda < -1` it is the moment of order
    :math:`-\lambda - 1` in the other order, over the finite losses.
    """
    if pair.variance:
        exact = 0.5 * pair.variance * order * (order + 1)
        return Interval(exact - 64 * UNIT * abs(exact), exact + 64 * UNIT * abs(exact), pair.tight)
    if order < -1:
        order, swapped = -1 - order, not swapped
    elif order > 0 and pair.bins(_cut(pair, _FAR), swapped=swapped).only_p > 0:
        return Interval(math.inf, math.inf, pair.tight)
    with np.errstate(all="ignore"):
        ends = _log_moment(pair, order, swapped=swapped)
    return Interval(*ends, pair.tight)


def _log_moment(pair: Pair, order: float, *, swapped: bool) -> tuple[float, float]:
    """Bound the log of a moment of the finite losses, of an order from -1."""
    cuts = _cut(pair, _FAR)
    bins = pair.bins(cuts, swapped=swapped)
    if not bins.whole:
        return -math.inf, math.inf
    beyond = []
    if bins.high.log_p > -math.inf:
        edge = _last_loss(bins)
        tail = pair.log_tail(np.array([order]), cuts, swapped=swapped)[0] if order > 0 else order * edge
        beyond.append(float(tail) if order > 0 else float(bins.high.log_p) + float(tail))
    if bins.low.log_p > -math.inf and order < 0:
        beyond.append((1 + order) * float(bins.low.log_p) - order * float(bins.low.log_q))
    # Splitting moves the outcomes below the bins up, which is right for positive orders.
    above, below = bins.split(), bins.merged()
    if order < 0:
        above, below = below, replace(bins, low=Mass()).split()
    return _log_sum(below, bins, order, [])[0], _log_sum(above, bins, order, beyond)[1]


def _log_sum(
    distribution: DiscreteLoss, bins: Bins, order: float, beyond: list[float]
) -> tuple[float, float]:
    """Return the log of a moment of a finite distribution and of what lies beyond, rounded down and up."""
    selected = np.isfinite(distribution.log_mass)
    moved = np.append(order * distribution.loss[selected], np.zeros(len(beyond)))
    masses = np.append(distribution.log_mass[selected], np.array(beyond) + 1e-9)
    exponents = moved + masses
    top = float(exponents.max(initial=-np.inf))
    if not math.isfinite(top):
        return -math.inf, top
    weights = np.exp(exponents - top)
    total = float(weights.sum())
    sizes = np.where(weights > 0, np.abs(moved) + np.abs(masses), 0.0)
    error = max(float(points.mass_error.max(initial=0.0)) for points in (bins.points, bins.atoms))
    off = UNIT * (4 * float(weights @ sizes) / total + 8 * abs(top) + len(weights) + 64) + 2 * error
    value = top + math.log(total)
    return value - off, value + off
