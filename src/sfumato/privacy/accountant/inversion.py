r"""Certified bounds on delta of a composition, by inverting its moment generating function.

For the composed loss :math:`L` write :math:`g(x) = E(1 - e^{x - L})_+` over the finite losses. For :math:`c >
0`

.. math:: g(x) = \frac{1}{2\pi i} \int_{c - i\infty}^{c + i\infty} \frac{\Phi(z) e^{-zx}}{z (z + 1)} dz,

:math:`\Phi(z) = E e^{zL}`. Three steps make two certified numbers of it; ``docs/proofs/accountant.md`` has
the proofs.

*Smoothing.* As a function of :math:`s = e^x`, :math:`g` is convex and falls. Let :math:`u` be normal of
variance :math:`v` and mean :math:`-v/2`, so that :math:`E e^u = 1`. Then :math:`g(x) \le E g(x + u)`
(Jensen), and :math:`g(x) \ge E[g(x + u) + g'(x + u)(e^{-u} - 1)]` (tangents lie below). Both have the factor
:math:`e^{v(z^2 + z)/2}` under the integral, the second also :math:`1 + z - z e^{v(1 + z)}`; both err by
:math:`O(v)`. A Gaussian part of the composition has such a factor of its own.

*Trapezoids.* The rule of step :math:`h` gives :math:`\sum_k e^{ckW} g(x + kW)`, :math:`W = 2\pi/h`. For
:math:`k \ne 0` the terms are at least 0, so the sum is an upper bound, and Chernoff's bound takes them away
for the lower one.

*The end of the line.* What follows the last point is bounded by how fast the distributions and the Gaussian
factor fall, in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT
from sfumato.privacy.accountant.composed_losses import ComposedLosses, DeltaBound, added
from sfumato.privacy.pairs.discrete_loss import Rings, Tilted

__all__ = ["Line"]

_Array = NDArray[np.float64]

_PROBES: Final = np.concatenate([np.linspace(-3.0, -0.04, 9), np.linspace(0.04, 2.5, 9)])
_DECAY_STEPS: Final = np.linspace(-9.0, 0.0, 37)
_MAX_POINTS: Final = 1 << 18
_MAX_SAMPLES: Final = 1 << 14
_FEW_POINTS: Final = 256
"""Of a line for which its decay need not be known better."""
_MANY: Final = 1e6
"""Losses of all distributions together."""
_TINY: Final = 1e-300
_MOMENT_SLACK: Final = 1e-9
_ROUND_SLACK: Final = 2.0**-43
"""Together they outweigh every rounding in the log of a moment: relative, and for each round."""
_SLACK: Final = 1.0 + 2.0**-20
"""Outweighs every rounding in a bound that is negligible itself."""


def _log_chernoff(log_moments: _Array, tilts: _Array, x: float) -> _Array:
    r"""Return bounds on the log of ``g(x)``, one for each tilt.

    As :math:`(1 - e^{x-l})_+ \le \kappa e^{c(l - x)}` with :math:`\kappa = c^c (1+c)^{-(1+c)}`.
    """
    return log_moments - tilts * x + tilts * np.log(tilts) - (1 + tilts) * np.log1p(tilts)


@dataclass(frozen=True, slots=True)
class _Sum:
    """The sum at one point: its log slope, the sum, and the error, all over ``exp(scale - c x)``."""

    value: float
    slope: float
    error: float


class Line(DeltaBound):
    """The moment generating function of a composition on one vertical line, ready to be inverted.

    Parameters
    ----------
    work : Work
    tilt : float
        Where the line crosses the real axis; the saddle point is best, every positive number is right.
    smoothing : float
        The variance of the smoothing, which may be 0 if ``work`` has a variance.
    near : float
        A value of x near which the line will be read.
    log_delta : float
        About what will be found there.
    log_precision : float
        Log of the relative error that aliases and the end of the line may cause.
    upper : bool
        Which of the two bounds is wanted.
    """

    def __init__(
        self,
        work: ComposedLosses,
        *,
        tilt: float,
        smoothing: float,
        near: float,
        log_delta: float,
        log_precision: float,
        upper: bool,
    ) -> None:
        super().__init__(work, upper=upper, scale=1e-3 / tilt)
        self._c, self._v = tilt, smoothing
        self._variance = work.variance + smoothing
        # Moments of many losses take longer than the points that a closer choice of the period spares.
        self._tilts = tilt * np.exp(_PROBES if self._losses < _MANY else _PROBES[1::3])
        moments = work.log_moments(self._tilts)
        rounds = math.fsum(float(np.sum(count)) for _, count in work.distributions)
        self._log_moments = moments + _MOMENT_SLACK * np.abs(moments) + _ROUND_SLACK * rounds
        self._width = self._period(near, log_delta + log_precision)
        self._step = 2 * math.pi / self._width
        self._distributions = [
            (distribution.tilted(tilt), count) for distribution, count in work.distributions
        ]
        self._times, self._beyond = self._ends(math.sqrt(2 * (3 - log_precision) / self._variance))
        deviation = math.sqrt(
            1 / tilt**2 + 1 / (1 + tilt) ** 2 + self._variance + _variance_of(self._distributions)
        )
        self._allowed = 0.1 * math.exp(log_precision) / (tilt * (1 + tilt) * deviation)
        self._log_precision = log_precision
        self._wanted = self._points_for(self._allowed)
        self._shortened = self._ready = False

    @property
    def points(self) -> int:
        """How many points the line has."""
        if not self._shortened:
            self._shortened = True
            wanted = self._wanted
            if wanted > _FEW_POINTS and self._sampled(8 - self._log_precision, 0.5 * wanted):
                self._wanted = self._points_for(self._allowed)
        return min(self._wanted, _MAX_POINTS)

    @property
    def cost(self) -> float:
        """Products of an atom and a point."""
        return self.points * super().cost

    @property
    def cut_short(self) -> bool:
        """Whether the line ends where what follows still counts."""
        return self.points < self._wanted

    def _period(self, near: float, log_alias: float) -> float:
        """Return the smallest period whose aliases Chernoff's bound proves to be below ``log_alias``."""
        c, tilts = self._c, self._tilts
        excess = _log_chernoff(self._log_moments, tilts, near) - log_alias
        periods = excess / np.abs(tilts - c)
        left = min(float(periods[tilts < c].min()), -log_alias / c)
        return 1.02 * max(left, float(periods[tilts > c].min()), 1e-3 / c)

    def _prepare(self) -> None:
        c, v, variance = self._c, self._v, self._variance
        times = self._step * np.arange(self.points)
        scales, phases = [0.5 * variance * (c * c + c)], [0.5 * variance * (2 * c + 1)]
        scale_error = 0.0
        log = np.zeros(self.points, complex)
        log_size, error, touched = np.zeros(self.points), np.zeros(self.points), np.zeros(self.points)
        for distribution, count in self._distributions:
            ray = distribution.ray(self._step, self.points)
            scales.extend(np.ravel(count * ray.log_total))
            scale_error += float(np.sum(count * ray.log_total_error))
            phases.extend(np.ravel(count * ray.mean))
            log += added(count, ray.log)
            touched += added(count, np.abs(ray.log))
            largest = ray.size + ray.error
            log_size += added(count, np.log(largest))
            error += added(count, ray.error / largest)
        self._log_total, self._phase = math.fsum(scales), math.fsum(phases)
        self._total_error = scale_error + 8 * UNIT * math.fsum(map(abs, scales))
        self._phase_size = math.fsum(map(abs, phases))
        decay = -0.5 * variance * times * times
        z = c + 1j * times
        kernel = 1 / (z * (z + 1))
        kernel_size = np.abs(kernel)
        if not self._upper:
            # (1 + z) - z exp(v (1 + z)), which differs from 1 by little where the smoothing is small
            less = z * _expm1(v * (1 + z))
            kernel, kernel_size = kernel * (1 - less), kernel_size * (1 + np.abs(less))
        weight = np.full(self.points, self._step / math.pi)
        weight[0] *= 0.5
        self._points, self._z = times, z
        self._terms = np.exp(log + decay) * kernel * weight
        # Of exp(log + decay): the error of the rays, of these sums and of their exponential.
        sizes = np.exp(log_size + decay) * kernel_size * weight
        rounding = UNIT * (64 - 8 * decay + (8 + len(scales)) * touched)
        self._error = float(sizes @ (error + rounding)) * _SLACK + self._end()
        self._reach = float(sizes.sum()), float(sizes @ times)

    def _points_for(self, allowed: float) -> int:
        """Return the number of points after which no more than ``allowed`` follows."""
        enough = int(np.argmax(self._beyond <= allowed)) if (self._beyond <= allowed).any() else -1
        return int(self._times[enough] / self._step) + 2

    def _ends(self, last: float) -> tuple[_Array, _Array]:
        """Return times up to ``last``, and bounds on all that follows each of them.

        Between two times the Gaussian factor and the smallest decay of the distributions up to the later one
        are known.
        """
        times = last * np.exp(_DECAY_STEPS)
        self._rates = np.full(len(times) - 1, 0.5 * self._variance)
        rings = Rings.of(times[1:])
        for distribution, count in self._distributions:
            self._rates += (1 - 1e-9) * added(count, distribution.decay(rings))
        return times, self._followed(times)

    def _followed(self, times: _Array) -> _Array:
        parts = [self._following(time, rate) for time, rate in zip(times[:-1], self._rates, strict=True)]
        parts.append(self._following(float(times[-1]), 0.5 * self._variance))
        return np.asarray(np.cumsum(parts[::-1])[::-1] * _SLACK)

    def _sampled(self, enough: float, few: float) -> bool:
        """Bound the decay from values at even times, the closer the fewer rounds there are.

        A factor of ``exp(-enough)`` need not be bounded more closely. False where not a few times will do.
        """
        times = self._times
        rounds = math.fsum(float(np.sum(count)) for _, count in self._distributions)
        moved = math.fsum(float(np.sum(n * distribution.moves())) for distribution, n in self._distributions)
        step = math.exp(-2 * enough / max(rounds, 1.0)) * rounds / max(moved, _TINY)
        if step <= 0 or times[-1] / step > min(_MAX_SAMPLES, few):
            return False
        count = int(times[-1] / step) + 2
        fallen = np.zeros(count)
        for distribution, runs in self._distributions:
            fallen -= added(runs, np.log(distribution.sizes(step, count)))
        # Each interval of times, with the samples whose middles enclose it.
        nearest = np.floor(times / step + 0.5).astype(int)
        smallest = [fallen[max(i - 1, 0) : j + 2].min() for i, j in pairwise(nearest.tolist())]
        decay = (1 - 1e-9) * np.array(smallest) / times[1:] ** 2
        self._rates = np.maximum(self._rates, 0.5 * self._variance + decay)
        self._beyond = self._followed(times)
        return True

    def _following(self, start: float, rate: float) -> float:
        """Bound the sum of all terms from ``start`` on, if they fall like ``exp(-rate * t**2)``.

        The first one is counted by itself, the others by the integral. The upper bound's kernel is at most
        1/t**2, the lower one's at most a multiple of 1/t and at most 1/t**2 plus a multiple of the smoothing.
        """
        log_total = math.log(self._step + 1 / (2 * rate * start)) - rate * start**2
        if self._upper:
            log_total -= 2 * math.log(start)
        else:
            growth = math.exp(self._v * (1 + self._c))
            log_total += math.log(min((1 + growth) / start, 1 / start**2 + self._v * growth))
        return math.exp(min(log_total, 700.0)) / math.pi

    def _end(self) -> float:
        """Bound all that follows the last point."""
        end = self.points * self._step
        index = int(np.searchsorted(self._times, end, "right")) - 1
        if index < 0:  # a line cut short, before the first time at which the decay is known
            return self._following(end, 0.5 * self._variance) * _SLACK
        return float(self._beyond[index])

    def _sum(self, x: float) -> _Sum:
        if not self._ready:
            self._prepare()
            self._ready = True
            self._distributions = []  # they are large, and a line may be read for long
        angle = self._phase - x
        turned = self._terms * np.exp(1j * self._points * angle)
        value, drop = float(turned.real.sum()), float((turned * self._z).real.sum())
        # The angle of point l is off by some roundings of t_l times each number that made it.
        size, moment = self._reach
        rounding = UNIT * ((64 + self.points) * size + 16 * moment * (self._phase_size + abs(x)))
        return _Sum(value, -drop / value if value > 0 else math.nan, self._error + rounding)

    def log_bound(self, x: float) -> tuple[float, float]:
        """Return the wanted bound on the log of ``g(x)`` (minus infinity for none below), and its slope."""
        at = self._sum(x)
        exponent = self._log_total - self._c * x
        rounding = self._total_error + 8 * UNIT * (abs(exponent) + abs(self._c * x) + 1)
        if self._upper:
            total = at.value + at.error
            return (math.log(total) + exponent + rounding if total > 0 else math.inf), at.slope
        total = at.value - at.error
        log_value = math.log(total) + exponent - rounding if total > 0 else -math.inf
        return _log_less(log_value, self._log_alias(x)), at.slope

    def _log_alias(self, x: float) -> float:
        c, tilts = self._c, self._tilts
        # On each side a geometric series whose first term Chernoff's bound gives; g is at most 1.
        gaps = np.append(np.abs(tilts - c), c) * self._width
        bounds = np.append(_log_chernoff(self._log_moments, tilts, x), 0.0) - gaps - np.log1p(-np.exp(-gaps))
        right = np.append(tilts > c, False)
        return math.log(2.0) + max(float(bounds[right].min()), float(bounds[~right].min())) + 1e-6

    def log_chernoff(self, x: float) -> float:
        """Return Chernoff's bound on the log of ``g(x)``; quick, and above the truth in any case."""
        best = float(_log_chernoff(self._log_moments, self._tilts, x).min())
        return best + _MOMENT_SLACK * (1 + abs(best))

    def chernoff_epsilon(self, log_delta: float) -> float:
        """Return an x at which Chernoff's bound is at most ``log_delta``."""
        excess = _log_chernoff(self._log_moments, self._tilts, 0.0) - log_delta
        excess += _MOMENT_SLACK * (np.abs(self._log_moments) + abs(log_delta) + 1)
        best = float((excess / self._tilts).min())
        return best + 8 * UNIT * abs(best)


def _variance_of(distributions: Sequence[tuple[Tilted, _Array]]) -> float:
    return math.fsum(float(np.sum(count * distribution.variance())) for distribution, count in distributions)


def _expm1(w: NDArray[Any]) -> NDArray[Any]:
    """Return ``exp(w) - 1`` to the last digits near 0, too, which older versions of NumPy do not."""
    real = np.expm1(w.real) * np.cos(w.imag) - 2 * np.sin(0.5 * w.imag) ** 2
    return np.asarray(real + 1j * np.exp(w.real) * np.sin(w.imag))


def _log_less(value: float, taken: float) -> float:
    """Return ``log(exp(value) - exp(taken))``, or minus infinity."""
    return value + math.log1p(-math.exp(taken - value)) - 4 * UNIT if taken < value else -math.inf
