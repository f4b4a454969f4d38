"""The privacy loss as a random variable: bounds on its moments, tails and quantiles, and a plot of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple, final

import numpy as np
from scipy.special import ndtr, ndtri

from sfumato import _check
from sfumato.numerics.interval import Interval
from sfumato.numerics.rounding import mul_down, mul_up
from sfumato.privacy._outward import UNIT, above, below
from sfumato.privacy.accountant.agreement import complement, intersection
from sfumato.privacy.accountant.intervals import Composition
from sfumato.privacy.accountant.planning import Pairs
from sfumato.privacy.accountant.precision import Precision
from sfumato.privacy.interpretation.curves import Curve
from sfumato.privacy.interpretation.one_direction import OneDirection
from sfumato.privacy.interpretation.plotting import draw
from sfumato.privacy.pairs.derived import fine_cuts
from sfumato.privacy.pairs.expectation import log_moment, loss_mean, loss_variance
from sfumato.privacy.pairs.pair import Pair

__all__ = ["LOOSE", "LossVariable"]

LOOSE: Final = Precision(relative=0.01, absolute=1e-5)
"""Of a probability; narrower bounds take much longer than those on delta."""
_REACH: Final = 20.0
_SHOWN: Final = 4.0
_STEEPEST: Final = 200.0
_DOUBLINGS: Final = 10
_STEPS: Final = 2.0 ** np.arange(_DOUBLINGS)


@final
@dataclass(frozen=True, slots=True)
class LossVariable:
    r"""The distribution of :math:`L = \log\frac{dP}{dQ}` of an outcome that is drawn from P.

    `PrivacyLoss.loss_variable` makes it. P and Q are the two distributions of the composed dominating pairs.

    Parameters
    ----------
    loss : PrivacyLoss
        Whose parts all have a dominating pair.
    reverse : bool
        False for outcomes drawn with the unit in the data, against without it; True for the other order.

    Notes
    -----
    All numbers are intervals with the truth of the declared pairs inside, round-off included. They add over
    the parts, but for `tail`, `cdf` and `quantile`. Continuous Gaussians alone are N(v/2, v) exactly, v the
    sum of their squares of mu. Otherwise tails are difference quotients of the certified hockey-stick
    divergence, which is convex (the proof is in `sfumato.privacy.interpretation.one_direction`).

    Where a part's pair only dominates, ``tight`` is False. Then what is left is what holds for every two
    distributions that it dominates: upper ends of `mean`, of `cgf` (of lower ends between -1 and 0), of
    `tail` above 0, and of `cdf` below 0; a tail or a variance of such a pair does not bound that of the
    mechanism.

    Examples
    --------
    >>> from sfumato.privacy import Gaussian
    >>> variable = (Gaussian(2.0) * 4).loss_variable()
    >>> round(variable.mean.upper, 6), round(variable.variance.upper, 6), round(variable.tail(0.5).upper, 6)
    (0.5, 1.0, 0.5)
    """

    loss: Composition
    reverse: bool = False

    @property
    def mean(self) -> Interval:
        """The mean: the Kullback-Leibler divergence; infinity where an infinite loss has a mass."""
        found = [(_loose(loss_mean(pair, swapped=self.reverse)), n) for pair, n in _pairs(self.loss)]
        return _sum(found)

    @property
    def variance(self) -> Interval:
        """The variance, bounded for tight pairs without a mass of infinite loss."""
        found = []
        for pair, n in _pairs(self.loss):
            one = loss_variance(pair, swapped=self.reverse)
            found.append((one if one.tight else Interval(0.0, math.inf, tight=False), n))
        return _sum(found)

    @property
    def infinite(self) -> Interval:
        """The mass of an infinite loss."""
        return _look(self.loss, self.reverse).infinite

    @property
    def support(self) -> Interval:
        """Two losses between which all finite ones lie, infinite where a tail has no end."""
        return _look(self.loss, self.reverse).support

    def cgf(self, order: float) -> Interval:
        r"""Return bounds on :math:`\log E_P e^{\lambda L}`.

        Parameters
        ----------
        order : float
            :math:`\lambda`, any finite number. For positive ones this is :math:`\lambda` times the Rényi
            divergence of order :math:`1 + \lambda`; for negative ones an infinite loss counts for nothing.

        Returns
        -------
        Interval
            Round-off included.
        """
        order = _check.finite("order", order, "pass an order such as 2.0")
        found = []
        for pair, n in _pairs(self.loss):
            one = log_moment(pair, order, swapped=self.reverse)
            if not one.tight:
                inside = -1 <= order <= 0
                one = Interval(one.lower if inside else 0.0, 0.0 if inside else one.upper, tight=False)
            found.append((one, n))
        return _sum(found)

    def tail(self, value: float, precision: Precision = LOOSE) -> Interval:
        """Return an interval with P(L > x) and P(L >= x) inside; they differ where x has a mass.

        Parameters
        ----------
        value : float
            The x. From 0 on the precision is that of the tail, below 0 that of `cdf`.
        precision : Precision
            Where it cannot be had, as at a mass, the interval is wider, with a `PrecisionWarning`.

        Returns
        -------
        Interval
            Within [0, 1].
        """
        return self._at(value, precision)[0]

    def cdf(self, value: float, precision: Precision = LOOSE) -> Interval:
        """Return an interval with P(L <= x) and P(L < x) inside; see `tail`.

        Parameters
        ----------
        value, precision
            As for `tail`.

        Returns
        -------
        Interval
            Within [0, 1].
        """
        return self._at(value, precision)[1]

    def _at(self, value: float, precision: Precision) -> tuple[Interval, Interval]:
        value = _check.finite("value", value, "pass a loss such as 1.0")
        tail, cdf = _distribution(self.loss, self.reverse, value, precision)
        precision.checked(tail if value >= 0 else cdf, f"the distribution of the loss at {value!r}")
        return tail, cdf

    def quantile(self, level: float, precision: Precision = LOOSE) -> Interval:
        """Return bounds on the smallest x with P(L <= x) at least ``level``.

        Parameters
        ----------
        level : float
            Strictly between 0 and 1.
        precision : Precision
            The width aimed at, against the greater of the quantile and the standard deviation.

        Returns
        -------
        Interval
            Infinite where the mass of an infinite loss is larger than ``1 - level``.
        """
        level = _check.unit_interval("level", level, "pass a probability such as 0.95")
        look = _look(self.loss, self.reverse)
        if above(1 - level, 2.0, 1.0) < look.infinite.lower:
            return Interval(math.inf, math.inf, look.infinite.tight)
        tight = look.infinite.tight
        middle = self._near(level, precision)
        width = precision.width(max(abs(middle), look.deviation))
        fine = self._precise(level, middle, precision.relative, 2e-3)
        lower, upper = look.support.lower, look.support.upper if look.infinite.upper == 0 else math.inf
        for step in (0.25 * width * _STEPS).tolist() if tight else ():
            if self._distribution(middle - step, fine)[1].upper < level:
                lower = max(lower, middle - step)
                break
        for step in (0.25 * width * _STEPS).tolist():
            if self._distribution(middle + step, fine)[1].lower >= level:
                upper = min(upper, middle + step)
                break
        return Precision(precision.relative, 4 * width).checked(
            Interval(lower, upper, tight), f"the quantile of the loss at {level!r}"
        )

    def _precise(self, level: float, value: float, relative: float, finest: float) -> Precision:
        """Return the precision that distinguishes a probability from ``level``, relative to its tail."""
        ratio = min(level, 1 - level) / (1 - level if value >= 0 else level)
        return Precision(min(0.5, max(finest, relative * ratio)), 0.0)

    def _distribution(self, value: float, precision: Precision) -> tuple[Interval, Interval]:
        return _distribution(self.loss, self.reverse, value, precision)

    def _near(self, level: float, precision: Precision) -> float:
        """Estimate the quantile."""
        look = _look(self.loss, self.reverse)
        centre = look.centre + look.deviation * float(ndtri(level))
        low, high = centre - look.deviation, centre + look.deviation
        for _ in range(_DOUBLINGS):
            left, right = self._is_below(low, level), not self._is_below(high, level)
            if left and right:
                break
            low, high = low if left else 2 * low - centre, high if right else 2 * high - centre
        while high - low > 0.25 * precision.width(max(abs(low), abs(high), look.deviation)):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._is_below(middle, level) else (low, middle)
        return 0.5 * (low + high)

    def _is_below(self, value: float, level: float) -> bool:
        """Estimate whether P(L <= x) is below ``level``."""
        cdf = self._distribution(value, self._precise(level, value, 0.1, 5e-3))[1]
        return (0.5 * (cdf.lower + cdf.upper) if cdf.tight else cdf.lower) < level

    def curve(self, points: int = 33) -> Curve:
        """Return bounds on P(L <= x), four standard deviations around the mean of the finite losses.

        Parameters
        ----------
        points : int
            How many, at least 2.

        Returns
        -------
        Curve
            Of kind "loss".
        """
        points = _check.integer("points", points, minimum=2, remedy="pass how many points to compute")
        look = _look(self.loss, self.reverse)
        reach = _SHOWN * look.deviation
        abscissae = np.linspace(
            max(look.centre - reach, look.support.lower), min(look.centre + reach, look.support.upper), points
        )
        found = [self._distribution(float(value), Precision(0.05, 1e-3))[1] for value in abscissae]
        return Curve(
            kind="loss",
            x=abscissae,
            lower=np.array([bound.lower for bound in found]),
            upper=np.array([bound.upper for bound in found]),
            x_label="privacy loss",
            y_label="probability of at most this loss",
        )

    def plot(self, *, points: int = 33, ax: Any = None) -> Any:
        """Draw `curve` into ``ax``, or into new axes, and return the axes; never shows them.

        Parameters
        ----------
        points : int
            How many, at least 2.
        ax : matplotlib.axes.Axes, optional
            Where to draw; new axes if None.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        MissingExtra
            If matplotlib is absent.
        """
        return draw(self.curve(points), ax)


class _Look(NamedTuple):
    """What the bins of the parts say; centre and deviation are estimates, for finite losses."""

    centre: float
    deviation: float
    support: Interval
    infinite: Interval
    normal: float


def _pairs(loss: Composition) -> Pairs:
    return [(part.dominating_pair(), count) for part, count in loss.terms]


def _loose(found: Interval) -> Interval:
    return found if found.tight else Interval(0.0, found.upper, tight=False)


def _sum(parts: list[tuple[Interval, int]]) -> Interval:
    lower = math.fsum(mul_down(float(n), one.lower) for one, n in parts)
    upper = math.fsum(mul_up(float(n), one.upper) for one, n in parts)
    return Interval(
        below(lower, 1.0) if lower else 0.0,
        above(upper, 1.0) if upper else 0.0,
        all(p.tight for p, _ in parts),
    )


@lru_cache(maxsize=256)
def _look(loss: Composition, reverse: bool) -> _Look:
    pairs = _pairs(loss)
    seen = [(_look_at(pair, reverse), n) for pair, n in pairs]
    tight = all(pair.tight for pair, _ in pairs)
    # The probability of a finite loss, as a logarithm.
    finite = [math.fsum(n * math.log1p(-min(mass, 1 - UNIT)) for (*_, mass), n in seen)]
    infinite = 1.0 if any(mass >= 1 for (*_, mass), _ in seen) else -math.expm1(finite[0])
    normal = math.fsum(pair.variance * n for pair, n in pairs) if all(p.variance for p, _ in pairs) else 0.0
    return _Look(
        math.fsum(n * one[0] for one, n in seen),
        math.sqrt(math.fsum(n * one[1] for one, n in seen)),
        _sum([(Interval(one[2], one[3], tight), n) for one, n in seen]),
        Interval(max(0.0, below(infinite, 64.0)) if tight else 0.0, min(1.0, above(infinite, 64.0)), tight)
        if infinite
        else Interval(0.0, 0.0, tight),
        normal,
    )


def _look_at(pair: Pair, reverse: bool) -> tuple[float, float, float, float, float]:
    """Estimate mean and variance of the finite losses; bound their ends and the mass of an infinite one."""
    with np.errstate(all="ignore"):
        bins = pair.bins(fine_cuts(pair, _REACH), swapped=reverse)
        both = bins.points.followed_by(bins.atoms)
        mass = np.exp(both.log_p)
        total = max(float(mass.sum()), 1e-300)
        mean = float(mass @ both.loss) / total
        variance = float(mass @ (both.loss - mean) ** 2) / total
    losses = np.concatenate([bins.edges, bins.atoms.loss])
    error = np.concatenate([bins.edge_error, bins.atoms.loss_error]) + 4 * UNIT * np.abs(losses)
    smallest = -math.inf if bins.low.log_p > -math.inf else float((losses - error).min(initial=math.inf))
    largest = math.inf if bins.high.log_p > -math.inf else float((losses + error).max(initial=-math.inf))
    if smallest > largest:
        smallest = largest = 0.0
    return mean, variance, smallest, largest, float(bins.only_p)


@lru_cache(maxsize=8192)
def _distribution(
    loss: Composition, reverse: bool, value: float, precision: Precision
) -> tuple[Interval, Interval]:
    """Bound P(L > x) and P(L >= x), and P(L <= x) and P(L < x)."""
    look = _look(loss, reverse)
    if value > look.support.upper:
        return look.infinite, complement(look.infinite)
    if value < look.support.lower:
        return Interval(1.0, 1.0), Interval(0.0, 0.0)
    if look.normal:
        tail = _normal(look.normal, value)
        return tail, complement(tail) if value >= 0 else _normal(look.normal, value, left=True)
    side = OneDirection.of(loss, reverse=reverse)
    if value >= 0:
        tail = _refined(side, value, look.deviation, precision)
        return tail, complement(tail)
    cdf = _refined(side.reversed(), -value, look.deviation, precision, left=True)
    return complement(cdf), cdf


def _refined(
    side: OneDirection, value: float, deviation: float, precision: Precision, *, left: bool = False
) -> Interval:
    """Bound one tail: a step as wide as the precision allows, and divergences precise enough for it."""
    read = side.lower_tail if left else side.upper_tail
    deviation = deviation or 1.0
    slope = min(side.slope(value, 0.1 * deviation), _STEEPEST / deviation)
    best = Interval(0.0, 1.0)
    if not side.divergence(value, 1e-2).tight:
        # The best step, unless the divergence is flat here and steep before; any step is right.
        steps = {min(math.log1p(1 / slope), deviation), deviation}
        return min((read(value, step, 1e-3) for step in steps), key=lambda found: found.upper)
    step = 0.5 * precision.relative / max(slope + left, 0.8 / deviation)
    wanted = 0.25 * precision.relative * (slope if left else 1 + slope) * step
    for _ in range(2):
        found = read(value, step, wanted)
        best = intersection("a tail of the loss", best, found)
        if precision.met(best.lower, best.upper):
            break
        step, wanted = 0.5 * step, 0.2 * wanted
    return best


def _normal(variance: float, value: float, *, left: bool = False) -> Interval:
    """Bound the upper tail of N(v/2, v), or the lower one, for a variance known to some roundings."""
    deviation = math.sqrt(variance)
    z = value / deviation - 0.5 * deviation
    z = -z if left else z
    size = 64 * UNIT * (abs(value) / deviation + deviation)
    ends = (float(ndtr(-(z + size))), float(ndtr(-(z - size))))
    slack = UNIT * (64 + 4 * z * z)
    return Interval(max(0.0, ends[0] * (1 - slack) - 1e-300), min(1.0, ends[1] * (1 + slack) + 1e-300))
