"""CoinPress: the mean of sub-Gaussian data from wide bounds, narrowed step by step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Final, Literal, NamedTuple, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.calibration import PrivacyTarget, minimum_noise
from sfumato.mechanisms.base.measurement import Measurement
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, plain
from sfumato.mechanisms.base.release import LatticeRelease, Release
from sfumato.mechanisms.base.sensitivity import Norm
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.mechanisms.query.records import as_numbers
from sfumato.mechanisms.query.sums import ROUNDING, Mean, checked_bounds
from sfumato.numerics.interval import Interval
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.privacy.calibration import analytic_gaussian_stddev
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["CoinPress", "MeanRelease"]

_LARGEST: Final = 1e12  # no data has more records


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeanRelease(Release):
    """An estimate of a population's mean, with an interval that was fixed beforehand.

    Parameters
    ----------
    value : float
        The estimate.
    interval : Interval
        Of the population's mean, at ``level``.
    level : float
        Its coverage, if the conditions of the mechanism hold.
    loss, neighboring, receipt, simulated, labels
        As in `Release`.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = CoinPress.calibrated(epsilon=1.0, delta=1e-6, bounds=(-1e6, 1e6), stddev=10.0)
    >>> release = mechanism.release(np.random.default_rng(0).normal(170, 10, 20_000), rng=1)
    >>> isinstance(release, MeanRelease), release.interval.lower < 170 < release.interval.upper
    (True, True)
    """

    interval: Interval
    level: float


class _Estimate(NamedTuple):
    mean: float
    interval: Interval


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CoinPress(Mechanism):
    r"""The mean of data from a sub-Gaussian distribution, from wide bounds that each step makes narrower.

    Parameters
    ----------
    bounds : tuple of two numbers
        Public; the population's mean lies between them. They may be wide: the cost grows with their
        logarithm only.
    stddev : float
        Public; the distribution is sub-Gaussian with this parameter (for a normal distribution its standard
        deviation, or a bound on it).
    noise : int, float or Fraction
        Standard deviation of the noise of the last step over the sensitivity of its two sums; steps before it
        have :math:`\sqrt{3 (\text{steps} - 1)}` times as much, and a quarter of the cost together.
    steps : int, optional
        At least 1; 1 clamps to the bounds and a few standard deviations beyond at once. Unless given, three
        for each factor of 100 between the distance of the bounds and ``stddev``, at least 2: enough for a
        thousand records, and more steps than are needed cost a few percent, as the last has most of epsilon.
    level : float
        Coverage of the interval that is released with the mean.
    neighboring : Neighboring
    population : {"normal", "sub-gaussian"}
        For which distributions the interval has its coverage. It is exact for a normal one, and for others
        right in the limit of many records; for every sub-Gaussian one it is 1.4 times as wide.

    Notes
    -----
    Guarantee: that of the Gaussian noise of all steps (`Gaussian` with ``l2``), whatever the data (under
    zero-out a neutral record is left out, as for every `Query`); the conditions on the population are for
    the interval alone. A step clamps to the bounds so far, widened by
    :math:`\sigma\sqrt{2\log(2n/\beta)}` for the count n that the noise allows, takes a `Mean` of private
    size, and narrows the bounds to where the mean can be. The clamping touches any record with probability
    at most :math:`\beta`, and the count is above what the noise allows with as much.

    *Interval.* Where no record was clamped, the sum of the records' differences from the population's mean,
    with the noise of the two released sums as they enter it, is sub-Gaussian with the variance
    :math:`n \sigma^2` plus the noise's (the discrete Gaussian is: Canonne, Kamath, Steinke 2020); for a
    normal population it is normal. The means for which that sum is within z of its standard deviations are
    an interval, by a quadratic equation (Fieller 1954). z is :math:`\sqrt{2 \log(2/\beta)}` in all steps but
    the last, which has nine tenths of ``1 - level``; all that can go wrong before has a tenth.

    References
    ----------
    Biswas, Dong, Kamath, Ullman, "CoinPress: practical private mean and covariance estimation" (NeurIPS
    2020), in one dimension, here for private n.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = CoinPress.calibrated(epsilon=1.0, delta=1e-6, bounds=(-1e6, 1e6), stddev=10.0)
    >>> heights = np.random.default_rng(0).normal(170, 10, 20_000)
    >>> release = mechanism.release(heights, rng=1)
    >>> round(release.value), release.interval.upper - release.interval.lower < 1
    (170, True)
    """

    bounds: tuple[float, float]
    stddev: float
    noise: Number
    steps: int = None  # type: ignore[assignment]  # settled in __post_init__
    level: float = 0.95
    neighboring: Neighboring = Neighboring.ADD_REMOVE
    population: Literal["normal", "sub-gaussian"] = "normal"

    def __post_init__(self) -> None:
        lower, upper = checked_bounds(self.bounds)
        if not lower < upper or not math.isfinite(float(upper) - float(lower)):
            rule = "be (lower, upper) with lower < upper, less than 1e308 apart"
            remedy = "pass wide bounds, such as (-1e6, 1e6)"
            _check.refuse("bounds", rule, self.bounds, remedy)
        object.__setattr__(self, "bounds", (float(lower), float(upper)))
        object.__setattr__(self, "stddev", _check.positive("stddev", self.stddev))
        remedy = "pass epsilon= and delta= to CoinPress.calibrated to have it chosen"
        object.__setattr__(self, "noise", plain(_check.fraction("noise", self.noise, remedy)))
        given: int | None = self.steps
        if given is None:
            ratio = (self.bounds[1] - self.bounds[0]) / self.stddev
            given = max(2, math.ceil(1.5 * math.log10(max(1.0, min(ratio, 1e300)))))
        object.__setattr__(self, "steps", _check.integer("steps", given, minimum=1))
        _check.unit_interval("level", self.level)
        if self.population not in ("normal", "sub-gaussian"):
            remedy = "pass 'sub-gaussian' where no shape is known"
            _check.refuse("population", "be 'normal' or 'sub-gaussian'", self.population, remedy)
        wide = (self.bounds[0] - self._reach(_LARGEST), self.bounds[1] + self._reach(_LARGEST))
        if not math.isfinite(wide[1] - wide[0]):  # of infinite ends too
            rule = "leave bounds widened by it finite"
            _check.refuse("stddev", rule, self.stddev, "pass a smaller one, or narrower bounds")
        _ = self.privacy_loss  # the mechanism checks noise and relation

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        delta: float,
        bounds: tuple[float, float],
        stddev: float,
        steps: int | None = None,
        level: float = 0.95,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
        population: Literal["normal", "sub-gaussian"] = "normal",
    ) -> CoinPress:
        """Return the mechanism with the smallest noise that meets (epsilon, delta).

        Parameters
        ----------
        epsilon, delta : float
            Delta must be positive.
        bounds, stddev, steps, level, neighboring, population
            As in the class.

        Returns
        -------
        CoinPress
        """
        request = PrivacyTarget(epsilon=epsilon, delta=_check.unit_interval("delta", delta))

        def of(noise: Fraction) -> CoinPress:
            return cls(
                bounds=bounds,
                stddev=stddev,
                noise=plain(noise),
                steps=steps,  # type: ignore[arg-type]
                level=level,
                neighboring=neighboring,
                population=population,
            )

        start = analytic_gaussian_stddev(sensitivity=1.2, epsilon=epsilon, delta=request.delta)
        return of(minimum_noise(lambda noise: of(noise).privacy_loss, request, Fraction(start)))

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release: of all steps."""
        query = Mean(bounds=self.bounds)
        loss = self._measurement(query, last=True).privacy_loss
        if self.steps == 1:
            return loss
        return loss + self._measurement(query, last=False).privacy_loss * (self.steps - 1)

    def release(self, value: Any, rng: Rng = None) -> MeanRelease:
        """Estimate the mean.

        Parameters
        ----------
        value : array, list or column of shape (n,)
            One real number per record; NaN counts as 0.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        MeanRelease
        """
        data, source = as_numbers(value, integral=False), random_source(rng)
        where = Interval(*self.bounds)
        size = Interval(0.0, math.inf)
        released = _Estimate((where.lower + where.upper) / 2, where)
        for step in range(self.steps):
            released, size = self._released(
                data, released.interval, size, last=step == self.steps - 1, source=source
            )
        return self._release_as(
            MeanRelease, released.mean, source, interval=released.interval, level=self.level
        )

    def _released(
        self, data: Any, where: Interval, size: Interval, *, last: bool, source: RandomSource
    ) -> tuple[_Estimate, Interval]:
        """Return mean and interval of one step, and what is known of the number of records."""
        beta = self._risk
        reach = self._reach(size.upper if math.isfinite(size.upper) else _LARGEST)
        query = Mean(bounds=(where.lower - reach, where.upper + reach))
        release = self._measurement(query, last=last).release(data, source)
        ends = release.interval(1 - beta / 2)
        minimum, maximum = (max(0.0, float(np.sum(end))) for end in ends[:2])
        size = Interval(max(minimum, size.lower), min(maximum, size.upper))
        times = self._last_width if last else math.sqrt(2 * math.log(2 / beta))
        around = _mean_interval(query, release, stddev=self.stddev, size=size.upper, times=times)
        lower, upper = max(where.lower, around.lower), min(where.upper, around.upper)
        if lower >= upper:  # only where a condition does not hold, or the noise was unlikely
            lower, upper = where.lower, where.upper
        mean = min(max(query.estimate(release), lower), upper)
        return _Estimate(mean, Interval(lower, upper)), size

    @property
    def _last_width(self) -> float:
        """Half the width of the last interval in standard deviations, at nine tenths of its error."""
        error = (1 - self.level) * 0.9
        if self.population == "normal":
            return NormalDist().inv_cdf(1 - error / 2)
        return math.sqrt(2 * math.log(2 / error))

    @property
    def _risk(self) -> float:
        """A third of a step's error: each for clamping, for the number of records, and for its interval."""
        return (1 - self.level) / (30 * self.steps)

    def _reach(self, maximum: float) -> float:
        """Return how far beyond the mean so many records lie at most, but with the chance of a risk."""
        return self.stddev * math.sqrt(2 * math.log(2 * max(1.0, maximum) / self._risk))

    def _measurement(self, query: Mean, *, last: bool) -> Measurement:
        noise = Fraction(self.noise)
        if not last:
            noise *= Fraction(math.sqrt(3 * (self.steps - 1)))
        steps = Fraction(query.sensitivity(self.neighboring, Norm.L2)) / query.step
        mechanism = Gaussian(
            l2=plain(steps), stddev=plain(noise * steps), integral=True, neighboring=self.neighboring
        )
        return Measurement(query=query, mechanism=mechanism)


def _mean_interval(
    query: Mean, release: LatticeRelease, *, stddev: float, size: float, times: float
) -> Interval:
    """Return which means are within so many standard deviations of what was released (Fieller's interval)."""
    high, low = (float(value) for value in np.asarray(release.value))
    (lower, upper), count, noise = query.bounds, high + low, (times * release.stddev) ** 2
    if not count**2 > 2 * noise:
        return Interval(lower, upper)
    # For the mean's position q, high (1 - q) - low q has the variance n (stddev / width)^2 + noise ((1 -
    # q)^2 + q^2): around high / count, a quadratic equation.
    at = high / count
    constant = times**2 * size * (stddev / (upper - lower)) ** 2 + noise * ((1 - at) ** 2 + at**2)
    linear, square = noise * (2 * at - 1), count**2 - 2 * noise
    root = math.sqrt(linear**2 + square * constant)
    slack = ROUNDING + 1e-15 * abs(at)
    low, high = (at + (linear + sign * root) / square + sign * slack for sign in (-1, 1))
    return Interval(lower + low * (upper - lower), lower + high * (upper - lower))
