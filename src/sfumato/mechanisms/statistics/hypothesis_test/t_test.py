"""The t-test, and intervals for means and variances, by a parametric bootstrap that includes the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self, cast, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.statistics.covariance import Variance
from sfumato.mechanisms.statistics.hypothesis_test.p_value import HypothesisTestResult
from sfumato.mechanisms.statistics.null_draws import (
    Alternative,
    as_side,
    drawn_noise,
    exceeded_by,
    null_draws,
    rank_among,
    rank_on_side,
)
from sfumato.numerics.interval import Interval

__all__ = ["t_interval", "t_test", "variance_interval"]

_Array = NDArray[np.float64]
_DRAWS: Final = 9999
_HALVINGS: Final = 26


class _Moments(NamedTuple):
    """Count, mean and variance, of one release or of many drawn ones."""

    count: Any
    mean: Any
    variance: Any


class _Randomness(NamedTuple):
    """Of many drawn samples: of the mean, of the variance, and the noise of the three sums."""

    normal: _Array
    squares: _Array
    noise: _Array


def t_test(
    release: LatticeRelease,
    other: LatticeRelease | None = None,
    *,
    query: Variance | None = None,
    mean: float | None = None,
    alternative: Alternative = "two-sided",
    draws: int = _DRAWS,
    rng: int | np.random.Generator | None = None,
) -> HypothesisTestResult:
    """Test whether a population's mean is a given one, or whether two have the same.

    Parameters
    ----------
    release : LatticeRelease
        Of ``query``, which gives count, mean and variance at once.
    other : LatticeRelease, optional
        Of the second population, by the same query.
    query : Variance, optional
        What was released, with its bounds; needed only for a release that does not name its query.
    mean : float, optional
        Of the null hypothesis, for one population.
    alternative : {"two-sided", "greater", "less"}
        On which side the (first) population's mean is larger or smaller.
    draws : int
        How many samples are drawn under the null hypothesis; at least 19.
    rng : None, int or numpy Generator
        For these draws; they need no secrecy.

    Returns
    -------
    HypothesisTestResult
        The statistic is Student's (Welch's for two), with the noise in the standard error; its p-value is the
        rank among those of the drawn samples.

    Notes
    -----
    Post-processing. The null hypothesis leaves count and variance open (and for two populations the common
    mean): a parametric bootstrap. Each sample is drawn with a count and a variance of its own, from samples
    of what the releases reveal of them, with fresh noise: one pair for all would take for certain what noise
    made small. So the size is right in the limit of many records, for populations that are nearly normal and
    seldom outside the bounds; of 20 records with epsilon 1 it is about the nominal one (`docs/mechanisms.md`
    says what was simulated).

    References
    ----------
    Ferrando, Wang, Sheldon, "Parametric bootstrap for differentially private confidence intervals" (AISTATS
    2022).

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Laplace
    >>> noisy = Laplace.for_query(Variance(bounds=(0.0, 100.0)), epsilon=1.0)
    >>> release = noisy.release(np.random.default_rng(0).normal(52, 10, 2000), rng=1)
    >>> [t_test(release, mean=mean, rng=2).p_value < 0.01 for mean in (50.0, 52.0)]
    [True, False]
    >>> t_test(release, mean=50.0, alternative="less", rng=2).p_value > 0.9
    True
    """
    given = _Samples.of(release, other, query)
    if (other is None) == (mean is None):
        remedy = "pass mean= of the null hypothesis with one release only"
        _check.refuse("mean", "be given for one release, and left out for two", mean, remedy)
    side = as_side(alternative)
    middle = given.common_mean() if mean is None else _check.finite("mean", mean)
    bounds = given.query.bounds
    if not bounds[0] <= middle <= bounds[1]:
        _check.refuse("mean", f"lie within the bounds {bounds}", mean, "pass one between the bounds")
    drawn = given.drawn([middle] * len(given.moments), draws, rng)
    shift = 0.0 if mean is None else middle
    value, found = float(given.statistic(given.moments, shift)), given.statistic(drawn, shift)
    return HypothesisTestResult(value if side else abs(value), rank_on_side(value, found, side))


def t_interval(
    release: LatticeRelease,
    other: LatticeRelease | None = None,
    *,
    level: float = 0.95,
    query: Variance | None = None,
    draws: int = _DRAWS,
    rng: int | np.random.Generator | None = None,
) -> Interval:
    """Return an interval for a population's mean, or for the difference of two: what `t_test` accepts.

    Parameters
    ----------
    release, other, query, draws, rng
        As in `t_test`.
    level : float
        Wanted coverage, strictly between 0 and 1.

    Returns
    -------
    Interval
        Of the mean of the first population, less that of the second. Its coverage is right in the limit of
        many records, as the size of `t_test`; `Variance.mean_interval` holds for every population, and is
        several times as wide.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Laplace
    >>> noisy = Laplace.for_query(Variance(bounds=(0.0, 100.0)), epsilon=1.0)
    >>> release = noisy.release(np.random.default_rng(0).normal(52, 10, 2000), rng=1)
    >>> lower, upper, _ = t_interval(release, rng=2)
    >>> round(lower, 1), round(upper, 1)
    (51.3, 52.2)
    """
    given, error = _Samples.of(release, other, query), 1 - _check.unit_interval("level", level)
    drawn = given.drawn([float(one.mean) for one in given.moments], draws, rng)
    center = float(given.difference(given.moments))
    found = np.abs(given.statistic(drawn, center))
    reach = float(exceeded_by(found, error)) * float(given.error(given.moments))
    lower, upper = given.query.bounds
    least, most = (lower, upper) if other is None else (lower - upper, upper - lower)
    return Interval(max(least, center - reach), min(most, center + reach))


def variance_interval(
    release: LatticeRelease,
    *,
    level: float = 0.95,
    query: Variance | None = None,
    draws: int = _DRAWS,
    rng: int | np.random.Generator | None = None,
) -> Interval:
    """Return an interval for the variance of a population that is nearly normal.

    Parameters
    ----------
    release, query, draws, rng
        As in `t_test`.
    level : float
        Wanted coverage, strictly between 0 and 1.

    Returns
    -------
    Interval
        In the squared unit of the data; the roots of its ends are an interval for the standard deviation.

    Notes
    -----
    Post-processing; a parametric bootstrap. The interval holds the variances of which neither more than the
    released one, nor less, is a surprise at half the error: normal samples are drawn with that variance, and
    with counts and means from samples of what the release reveals of them. Without noise it is the one by the
    chi-square distribution, right for normal records of any number; for others it does not hold, even in the
    limit, as that one does not. `Variance.estimate_interval` is for the variance of the records themselves,
    whatever they are.

    References
    ----------
    Ferrando, Wang, Sheldon, "Parametric bootstrap for differentially private confidence intervals" (AISTATS
    2022).

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Laplace
    >>> noisy = Laplace.for_query(Variance(bounds=(0.0, 100.0)), epsilon=1.0)
    >>> release = noisy.release(np.random.default_rng(0).normal(52, 10, 2000), rng=1)
    >>> lower, upper, _ = variance_interval(release, rng=2)
    >>> round(lower**0.5, 1), round(upper**0.5, 1)
    (9.6, 10.5)
    """
    given, error = _Samples.of(release, None, query), 1 - _check.unit_interval("level", level)
    number, generator = null_draws(draws, rng)
    seen = given.moments[0]
    around = given.around(seen, seen.mean, release, number, generator)
    randomness = given.randomness(around, release, number, generator)
    most = (given.query.bounds[1] - given.query.bounds[0]) ** 2 / 4

    def refused(variance: float, side: int) -> bool:
        # The same draws for every variance: what is released of it rises with it.
        drawn = given.combined(around._replace(variance=variance), around.mean, randomness).variance
        return rank_among(side * float(seen.variance), side * drawn) <= error / 2

    def end(side: int) -> float:
        low, high = 0.0, most
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if refused(middle, side) == (side > 0):
                low = middle
            else:
                high = middle
        return low if side > 0 else high

    return Interval(end(1), end(-1))


@final
@dataclass(frozen=True, slots=True)
class _Samples:
    """One or two populations' released moments."""

    query: Variance
    releases: Sequence[LatticeRelease]
    moments: Sequence[_Moments]

    @classmethod
    def of(cls, release: LatticeRelease, other: LatticeRelease | None, query: Variance | None) -> Self:
        """Return the moments of releases of one query, or refuse others."""
        asked = _query(release, query)
        releases = [release] if other is None else [release, other]
        sums = [np.asarray(asked.check_release(one).value, dtype=np.float64) for one in releases]
        return cls(asked, releases, [_moments(each, asked) for each in sums])

    def common_mean(self) -> float:
        """Return the mean of both populations, if they have one."""
        weights = [one.count / max(one.variance, 1e-300) for one in self.moments]
        products = (weight * one.mean for weight, one in zip(weights, self.moments, strict=True))
        return float(sum(products) / max(sum(weights), 1e-300))

    def drawn(
        self, means: Sequence[float], draws: int, rng: int | np.random.Generator | None
    ) -> Sequence[_Moments]:
        """Return noisy moments of samples with these means, and with drawn counts and variances."""
        number, generator = null_draws(draws, rng)
        found = []
        for one, release, mean in zip(self.moments, self.releases, means, strict=True):
            around = self.around(one, one.mean, release, number, generator)
            found.append(self.around(around, mean, release, number, generator))
        return found

    def around(
        self, one: _Moments, mean: Any, release: LatticeRelease, number: int, generator: np.random.Generator
    ) -> _Moments:
        """Return the noisy moments of normal samples; their moments are drawn, not their records."""
        return self.combined(one, mean, self.randomness(one, release, number, generator))

    def randomness(
        self, one: _Moments, release: LatticeRelease, number: int, generator: np.random.Generator
    ) -> _Randomness:
        """Return what is drawn for samples of so many records, but for their mean and variance."""
        freedom = np.maximum(2.0, np.rint(one.count)) - 1
        return _Randomness(
            generator.standard_normal(number),
            generator.chisquare(freedom, number),
            drawn_noise(release, (number, 3), generator),
        )

    def combined(self, one: _Moments, mean: Any, randomness: _Randomness) -> _Moments:
        """Return the noisy moments of normal samples with a mean, and with a count and a variance."""
        (lower, upper), deviation = self.query.bounds, np.sqrt(one.variance)
        count = np.maximum(2.0, np.rint(one.count))
        means = mean + deviation * randomness.normal / np.sqrt(count)
        variances = deviation**2 * randomness.squares / count
        position = (means - lower) / (upper - lower)
        square = position**2 + variances / (upper - lower) ** 2
        sums = np.stack([square, 2 * (position - square), 1 - 2 * position + square])
        return _moments((count * sums).T + randomness.noise, self.query)

    def difference(self, moments: Sequence[_Moments]) -> Any:
        """Return the first mean, less the second."""
        return moments[0].mean - (moments[1].mean if len(moments) > 1 else 0.0)

    def error(self, moments: Sequence[_Moments]) -> Any:
        """Return the standard error of the difference, by sampling and noise."""
        width = self.query.bounds[1] - self.query.bounds[0]
        # The mean's position is (high + cross / 2) / count: noise of three sums, of weights below 1.
        variance = sum(
            one.variance / one.count + 1.25 * (width * release.stddev / one.count) ** 2
            for one, release in zip(moments, self.releases, strict=True)
        )
        return np.sqrt(variance)

    def statistic(self, moments: Sequence[_Moments], center: float) -> Any:
        """Return how many standard errors the difference is away."""
        return (self.difference(moments) - center) / self.error(moments)


def _query(release: object, query: object) -> Variance:
    """Return the query that was released: the one that is given, or else the one that the release names."""
    if not isinstance(release, LatticeRelease):
        _check.refuse_type("release", "be of a Variance query", release, "release Variance(bounds=...)")
    named = release.query.before_transformations() if isinstance(release.query, Query) else None
    found = named if query is None else query
    _check.instance("query", found, Variance, "pass query=Variance(...), the one that was released")
    return cast("Variance", found)


def _moments(sums: _Array, query: Variance) -> _Moments:
    """Return the moments that three sums give; arrays of them along the last axis."""
    high, cross, low = np.moveaxis(sums, -1, 0)
    count = np.maximum(high + cross + low, 2.0)
    position = np.clip((high + cross / 2) / count, 0, 1)
    variance = np.clip(high / count - position**2, 1 / count**2, 0.25)
    lower, upper = query.bounds
    return _Moments(count, lower + (upper - lower) * position, (upper - lower) ** 2 * variance)
