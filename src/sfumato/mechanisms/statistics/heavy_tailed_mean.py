"""The mean of heavy-tailed data with a bounded moment: a rough location first, then clamping around it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.base.measurement import Measurement
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, drawn_epsilon
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.mechanisms.query.records import as_numbers
from sfumato.mechanisms.query.sums import Mean, checked_bounds
from sfumato.mechanisms.statistics.coinpress import MeanRelease
from sfumato.mechanisms.statistics.quantile.quantiles import Quantile
from sfumato.numerics.interval import Interval
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["HeavyTailedMean"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HeavyTailedMean(Mechanism):
    r"""The mean of a population with a bounded moment, however heavy its tails.

    Parameters
    ----------
    bounds : tuple of two numbers
        Public; the population's mean lies between them.
    moment_bound : float
        Public bound on the central moment of the order k, as its k-th root :math:`(E|X - \mu|^k)^{1/k}` in
        the unit of the data: on the standard deviation for order 2.
    expected_records : int
        About how many records there are: a public guess, which only sets how far out to clamp.
    epsilon : float
        A quarter pays for the median, the rest for the mean.
    order : float
        Of the moment, k; at least 2, which bounds the variance alone.
    level : float
        Coverage of the interval that is released with the mean.
    grid : Grid, optional
        Of the median.
    neighboring : Neighboring

    Notes
    -----
    Guarantee: basic composition of a `Quantile` and of `Laplace` noise on a `Mean` of private size, whatever
    the data. Records are clamped to within r of the private median, :math:`r = s\,(n\epsilon)^{1/k}` with the
    guess n and the bound s on the moment, at least 3 s.

    The interval is for a population as declared; a third of its error each is the noise's, the sampling's and
    the median's. Let d be the distance of the released median m from :math:`\mu`. Nearly half of the records
    lie beyond m (`Quantile.rank_bound`; Hoeffding), which Markov's inequality allows for :math:`(s/d)^k` of
    them: so d is at most about :math:`2^{1/k} s`. Clamping moves the mean by at most :math:`E(|X - m| - r)_+
    \le \frac{(k-1)^{k-1}}{k^k} (s + d)^k / r^{k-1}`, the bias; d in turn is at most the distance of m from
    the clamped mean and the bias: iterated, it falls. The data's clamped mean is within :math:`\sqrt{2 s^2
    L/n} + 4 r L/(3n)` of the population's (Bernstein), :math:`L = \log(2/\beta)`.

    References
    ----------
    Kamath, Singhal, Ullman, "Private mean estimation of heavy-tailed distributions" (COLT 2020), in one
    dimension.

    Examples
    --------
    >>> import numpy as np
    >>> data = 40 + np.random.default_rng(0).standard_t(3, 50_000)
    >>> mechanism = HeavyTailedMean(
    ...     bounds=(-1e6, 1e6), moment_bound=2.0, expected_records=50_000, epsilon=1.0
    ... )
    >>> release = mechanism.release(data, rng=1)
    >>> round(release.value), release.interval.upper - release.interval.lower < 1
    (40, True)
    """

    bounds: tuple[float, float]
    moment_bound: float
    expected_records: int
    epsilon: float
    order: float = 2.0
    level: float = 0.95
    grid: Grid | None = None
    neighboring: Neighboring = Neighboring.ADD_REMOVE

    def __post_init__(self) -> None:
        lower, upper = checked_bounds(self.bounds)
        object.__setattr__(self, "bounds", (float(lower), float(upper)))
        _check.positive("moment_bound", self.moment_bound)
        _check.integer("expected_records", self.expected_records, minimum=1, remedy="pass a public guess")
        _check.positive("epsilon", self.epsilon)
        if not 2 <= _check.finite("order", self.order) <= 64:
            _check.refuse("order", "be from 2 to 64", self.order, "pass 2 where only the variance is bounded")
        _check.unit_interval("level", self.level)
        self._mean((self.bounds[0] - self.reach, self.bounds[1] + self.reach))
        _ = self.privacy_loss  # the parts check the rest
        if self.reach < math.ulp(max(map(abs, self.bounds))):
            # Around some medians the ends of the clamping would be one float: an error that data decides.
            rule = "be no less than floats between the bounds are apart"
            _check.refuse("moment_bound", rule, self.moment_bound, "pass a larger one, or bounds nearer to 0")

    @property
    def reach(self) -> float:
        """How far from the median records are clamped."""
        far = float((self.expected_records * self.epsilon) ** (1 / self.order))
        return self.moment_bound * max(3.0, far)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        return self._median.privacy_loss + self._mean((0.0, 1.0)).privacy_loss

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
        median = float(self._median.release(data, source).value)
        clamped = (median - self.reach, median + self.reach)
        query = Mean(bounds=clamped)
        release = self._mean(clamped).release(data, source)
        error = (1 - self.level) / 3
        noisy = query.estimate_interval(release, 1 - error / 2)
        minimum = float(np.maximum(np.asarray(release.interval(1 - error / 4).lower), 0.0).sum())
        around = self._around(noisy, median, minimum, error)
        mean = min(max(query.estimate(release), around.lower), around.upper)
        return self._release_as(MeanRelease, mean, source, interval=around, level=self.level)

    def _around(self, noisy: Interval, median: float, minimum: float, error: float) -> Interval:
        """Return where the population's mean can be, for so many records at least."""
        whole = Interval(*self.bounds)
        if minimum < 1:
            return whole
        beyond = 0.5 - (self._median.rank_bound(error / 2) + 1) / minimum
        beyond -= math.sqrt(math.log(4 / error) / (2 * minimum))
        if beyond <= 0:
            return whole
        odds = math.log(2 / error)
        sampling_error = math.sqrt(2 * self.moment_bound**2 * odds / minimum) + 4 * self.reach * odds / (
            3 * minimum
        )
        lower, upper = noisy.lower - sampling_error, noisy.upper + sampling_error
        off = max(abs(lower - median), abs(upper - median))
        far = self.moment_bound * beyond ** (-1 / self.order)
        for _ in range(60):
            far = min(far, off + self._bias(far))
        bias = self._bias(far)
        lower, upper = max(whole.lower, lower - bias), min(whole.upper, upper + bias)
        return Interval(lower, upper) if lower < upper else whole

    def _bias(self, far: float) -> float:
        """Return how far clamping moves the mean at most, around a point that is so far from it."""
        order, maximum = self.order, self.moment_bound + far
        return float(
            ((order - 1) / order) ** (order - 1) / order * maximum * (maximum / self.reach) ** (order - 1)
        )

    @property
    def _median(self) -> Quantile:
        return Quantile(
            bounds=self.bounds,
            epsilon=drawn_epsilon(self.epsilon) / 4,
            grid=self.grid,  # type: ignore[arg-type]
            neighboring=self.neighboring,
        )

    def _mean(self, bounds: tuple[Number, Number]) -> Measurement:
        query = Mean(bounds=(float(bounds[0]), float(bounds[1])))
        return Laplace.for_query(query, epsilon=0.75 * self.epsilon, neighboring=self.neighboring)
