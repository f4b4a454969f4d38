"""The t-test on noisy moments, by a parametric bootstrap that includes the noise."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.statistics.covariance import Variance
from sfumato.mechanisms.statistics.hypothesis_test.null_draws import null_draws, rank_among
from sfumato.mechanisms.statistics.hypothesis_test.p_value import HypothesisTestResult

__all__ = ["t_test"]

_Array = NDArray[np.float64]
_DRAWS: Final = 9999


class _Moments(NamedTuple):
    """Count, mean and variance, of one release or of many drawn ones."""

    count: Any
    mean: Any
    variance: Any


def t_test(
    release: LatticeRelease,
    other: LatticeRelease | None = None,
    *,
    query: Variance | None = None,
    mean: float | None = None,
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
    draws : int
        How many samples are drawn under the null hypothesis; at least 19.
    rng : None, int or numpy Generator
        For these draws; they need no secrecy.

    Returns
    -------
    HypothesisTestResult
        Of both sides. The statistic is Student's (Welch's for two), with the noise in the standard error; its
        p-value is the rank among those of the drawn samples.

    Notes
    -----
    Post-processing. The null hypothesis leaves count and variance open (and for two populations the common
    mean), and what the releases reveal of them stands for them: a parametric bootstrap. So the size is
    right in the limit of many records, for populations that are nearly normal and seldom outside the bounds.

    References
    ----------
    Ferrando, Wang, Sheldon, "Parametric bootstrap for differentially private confidence intervals" (AISTATS
    2022).

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Laplace
    >>> query = Variance(bounds=(0.0, 100.0))
    >>> noisy = Laplace.for_query(query, epsilon=1.0)
    >>> release = noisy.release(np.random.default_rng(0).normal(52, 10, 2000), rng=1)
    >>> [t_test(release, mean=mean, rng=2).p_value < 0.01 for mean in (50.0, 52.0)]
    [True, False]
    """
    query = _query(release, query)
    if (other is None) == (mean is None):
        remedy = "pass mean= of the null hypothesis with one release only"
        _check.refuse("mean", "be given for one release, and left out for two", mean, remedy)
    number, generator = null_draws(draws, rng)
    releases = [release] if other is None else [release, other]
    sums = [np.asarray(query.check_release(one).value, dtype=np.float64) for one in releases]
    released = [_moments(each, query) for each in sums]
    if mean is None:
        weights = [moments.count / max(moments.variance, 1e-300) for moments in released]
        middle = sum(w * m.mean for w, m in zip(weights, released, strict=True)) / max(sum(weights), 1e-300)
    else:
        middle = _check.finite("mean", mean)
        if not query.bounds[0] <= middle <= query.bounds[1]:
            _check.refuse(
                "mean", f"lie within the bounds {query.bounds}", mean, "pass one between the bounds"
            )
    noise = [one.stddev for one in releases]
    drawn = [
        _drawn(moments, middle, one, query=query, number=number, generator=generator)
        for moments, one in zip(released, releases, strict=True)
    ]
    value = float(_statistic(released, middle, noise, query))
    return HypothesisTestResult(value, rank_among(value, _statistic(drawn, middle, noise, query)))


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


def _drawn(
    released: _Moments,
    mean: float,
    release: LatticeRelease,
    *,
    query: Variance,
    number: int,
    generator: np.random.Generator,
) -> _Moments:
    """Return the noisy moments of normal samples, whose mean and variance are drawn, not their records."""
    count, (lower, upper) = max(2, round(float(released.count))), query.bounds
    deviation = float(np.sqrt(released.variance))
    means = mean + deviation * generator.standard_normal(number) / np.sqrt(count)
    variances = deviation**2 * generator.chisquare(count - 1, number) / count
    position = (means - lower) / (upper - lower)
    square = position**2 + variances / (upper - lower) ** 2
    sums = count * np.stack([square, 2 * (position - square), 1 - 2 * position + square], axis=-1)
    noise = np.asarray(release.distribution.sample((number, 3), generator)) * float(release.step)
    return _moments(sums + noise, query)


def _statistic(released: list[_Moments], middle: float, noise: list[float], query: Variance) -> Any:
    width = query.bounds[1] - query.bounds[0]
    # The mean's position is (high + cross / 2) / count: noise of three sums, of weights below 1.
    variance = sum(
        one.variance / one.count + 1.25 * (width * deviation / one.count) ** 2
        for one, deviation in zip(released, noise, strict=True)
    )
    away = released[0].mean - (middle if len(released) == 1 else released[1].mean)
    return np.abs(away) / np.sqrt(variance)
