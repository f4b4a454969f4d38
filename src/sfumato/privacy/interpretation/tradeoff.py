r"""The smallest false negative rate of any attack, from the privacy profile.

An attack decides between two neighbors: it takes one for the other with the false positive rate
:math:`\alpha`, and misses with the false negative rate :math:`\beta`. With :math:`\delta(t)` the greater of
both orders' hockey-stick divergences at :math:`t = e^\epsilon`,

.. math:: f(\alpha) = \sup_{t \ge 1} \max\{1 - \delta(t) - t\alpha,\; (1 - \delta(t) - \alpha)/t\}

is the largest trade-off function that the loss has in both orders (Dong, Roth, Su 2022, the duality of
profiles and trade-off functions); attacks reach it that may toss a coin over which neighbor is the null.

*From below*, every :math:`t` gives a bound, with an upper bound on :math:`\delta(t)`.

*From above*. Continue :math:`\delta` to :math:`0 < t < 1` by :math:`1 - t + t\,\delta(1/t)`, the divergence
with the roles exchanged. Then :math:`f(\alpha) = \sup_{t > 0} g(t)`, :math:`g(t) = 1 - \delta(t) - t\alpha`,
and :math:`g` is concave: :math:`\delta` is the greater of two suprema of linear functions of :math:`t`. Take
three points with :math:`g(t_1)` provably above :math:`g(t_0)` and :math:`g(t_2)`: outside of them it is below
its value at the nearer end, and between them below the lines through two of the points, continued.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.numerics.interval import Interval
from sfumato.privacy._outward import above, below
from sfumato.privacy.accountant import intervals
from sfumato.privacy.accountant.agreement import intersection
from sfumato.privacy.accountant.intervals import Composition
from sfumato.privacy.accountant.precision import STANDARD, Precision

__all__ = ["trade_off"]

_Array = NDArray[np.float64]

_COARSE: Final = Precision(1e-2)
_CLOSE: Final = 0.02
_ROUNDS: Final = 10
_GROWTH: Final = 4.0
_FARTHEST: Final = 700.0


@overload
def trade_off(
    loss: Composition, false_positive_rate: float, precision: Precision = ...
) -> Interval[float]: ...
@overload
def trade_off(
    loss: Composition, false_positive_rate: _Array, precision: Precision = ...
) -> Interval[_Array]: ...
def trade_off(
    loss: Composition, false_positive_rate: ArrayLike, precision: Precision = STANDARD
) -> Interval[float] | Interval[_Array]:
    """Return bounds on the smallest false negative rate; see `sfumato.privacy.PrivacyLoss.trade_off`."""
    rates = np.asarray(false_positive_rate, dtype=object)
    checked = [_rate(rate) for rate in rates.ravel()]
    found = [_trade_off(loss, rate, precision) for rate in checked]
    if rates.ndim == 0:
        return found[0]
    lower, upper = (np.array([bound[i] for bound in found]).reshape(rates.shape) for i in (0, 1))
    return Interval(lower, upper, all(bound.tight for bound in found))


def _rate(value: object) -> float:
    remedy = "it is a probability"
    number = value.item() if isinstance(value, np.generic) else value
    return _check.share("false_positive_rate", number, remedy)


class _Value(NamedTuple):
    """A point on the axis of log t, t itself, and bounds on the concave function there."""

    point: float
    t: float
    lower: float
    upper: float


def _trade_off(loss: Composition, rate: float, precision: Precision) -> Interval[float]:
    at_zero = intervals.delta_on_curve(loss, 0.0, precision)
    if at_zero.upper == 0 or rate == 1:
        exact = 1.0 - rate
        return Interval(max(0.0, below(exact)), min(1.0, above(exact)))
    read = partial(_value, loss, rate)
    scale = min(1.0, 2 * at_zero.upper)
    best = _best(lambda point: read(point, _COARSE).upper, scale)
    limit = min(1.0, above(1.0 - rate))
    lower, upper = _enclosed(lambda point: read(point, precision), best, _CLOSE * scale, limit, precision)
    found = intersection("the trade-off", Interval(0.0, upper), Interval(max(0.0, lower), limit))
    return found if at_zero.tight else Interval(found.lower, limit, tight=False)


def _enclosed(
    read: Callable[[float], _Value], best: float, width: float, upper: float, precision: Precision
) -> tuple[float, float]:
    """Bound the maximum, from triples of points that lie closer and closer, as far as they prove it."""
    middle = read(best)
    lower, certain = middle.lower, False
    for _ in range(_ROUNDS):
        if precision.met(lower, upper) or abs(middle.point) + width > _FARTHEST:
            break
        left, right = read(middle.point - width), read(middle.point + width)
        lower = max(lower, left.lower, right.lower)
        if middle.lower > max(left.upper, right.upper):
            upper, certain = min(upper, _ceiling(left, middle, right)), True
            middle = max(middle, read(_vertex(left, middle, right)), key=lambda value: value.lower)
            lower = max(lower, middle.lower)
            width /= _GROWTH
        elif certain:
            break
        elif max(left.lower, right.lower) > middle.upper:
            middle = max(left, right, key=lambda value: value.lower)
        else:
            width *= _GROWTH
    return lower, upper


def _value(loss: Composition, rate: float, point: float, precision: Precision) -> _Value:
    """Bound the concave function at ``t = exp(point)``."""
    lower, upper, _ = intervals.delta_on_curve(loss, abs(point), precision)
    t = math.exp(point)
    if point >= 0:
        slack = 8 * t * rate * abs(point)
        ends = (1 - upper - t * rate, 1 - lower - t * rate)
        size = 1 + t * rate + slack
        return _Value(point, t, below(ends[0], 8.0, size), above(ends[1], 8.0, size))
    size = t * (2 + abs(point))
    return _Value(
        point, t, below(t * (1 - upper - rate), 8.0, size), above(t * (1 - lower - rate), 8.0, size)
    )


def _vertex(left: _Value, middle: _Value, right: _Value) -> float:
    """Return where the parabola through three points is highest, which lies between the outer two."""
    before, after = ((middle.lower + middle.upper - side.lower - side.upper) for side in (left, right))
    return middle.point + 0.5 * (middle.point - left.point) * (before - after) / (before + after)


def _ceiling(left: _Value, middle: _Value, right: _Value) -> float:
    """Bound the maximum of a concave function that is lower at both ends than between them."""
    before, after = middle.t - left.t, right.t - middle.t
    rise = max((middle.upper - right.lower) * before / after, (middle.upper - left.lower) * after / before)
    return above(middle.upper + rise * (1 + 1e-9), 16.0, 1.0)


def _best(height: Callable[[float], float], scale: float) -> float:
    """Return about where a unimodal function is largest."""
    step, point, value = 0.5 * scale, 0.0, height(0.0)
    sign = 1.0 if height(step) >= height(-step) else -1.0
    while point + step < _FARTHEST and (further := height(sign * (point + step))) > value + 1e-9 * abs(value):
        point, value, step = point + step, further, 2 * step
    low, high = point - 0.5 * step, min(point + step, _FARTHEST)
    golden = 0.5 * (math.sqrt(5.0) - 1)
    left, right = high - golden * (high - low), low + golden * (high - low)
    values = height(sign * left), height(sign * right)
    while high - low > _CLOSE * scale:
        if values[0] > values[1]:
            high, right = right, left
            left = high - golden * (high - low)
            values = height(sign * left), values[0]
        else:
            low, left = left, right
            right = low + golden * (high - low)
            values = values[1], height(sign * right)
    return sign * 0.5 * (low + high)
