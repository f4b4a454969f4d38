"""Confidence intervals for the population from noisy statistics, by a parametric bootstrap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.statistics.null_draws import exceeded_by, null_draws
from sfumato.numerics.randomness.source import random_source

__all__ = ["BootstrapInterval", "parametric_bootstrap"]

_Array = NDArray[np.float64]
_REMEDY: Final = "release a query: Laplace.for_query(Mean(...), epsilon=...), say"


class BootstrapInterval(NamedTuple):
    """An estimate with its interval for the population, by a parametric bootstrap.

    Attributes
    ----------
    estimate : float or float64 array
        From the release.
    lower, upper : float or float64 array
        The ends of the intervals, one for each entry.
    standard_error : float or float64 array
        Of the estimate: sampling and noise together.
    bias : float or float64 array
        The mean of the draws less the estimate; it is not taken off the estimate, but off the interval.

    Examples
    --------
    >>> found = BootstrapInterval(0.5, 0.4, 0.6, 0.05, 0.0)
    >>> found.upper - found.lower < 0.3
    True
    """

    estimate: Any
    lower: Any
    upper: Any
    standard_error: Any
    bias: Any


def parametric_bootstrap(
    release: LatticeRelease | Sequence[LatticeRelease],
    *,
    estimate: Callable[..., Any],
    simulate: Callable[[Any, np.random.Generator], Any],
    quantity: Callable[[Any], Any] | None = None,
    level: float = 0.95,
    draws: int = 999,
    rng: int | np.random.Generator | None = None,
) -> BootstrapInterval:
    r"""Return confidence intervals for parameters of the population, under a model of your own.

    Parameters
    ----------
    release : LatticeRelease, or sequence of them
        Of queries, by mechanisms that name them.
    estimate : callable
        From the release (or from as many as there are) to the model's parameters: a number or an array.
    simulate : callable
        From parameters and a numpy Generator to data as the queries take them, of as many records; for
        several releases a tuple, of data for each.
    quantity : callable, optional
        From parameters to what is wanted of them, such as a difference; the parameters unless given.
    level : float
        Wanted coverage of each interval, strictly between 0 and 1.
    draws : int
        How many data sets are simulated; at least 19.
    rng : None, int or numpy Generator
        For these draws; they need no secrecy.

    Returns
    -------
    BootstrapInterval

    Raises
    ------
    ParameterError
        If a parameter breaks its rule, or a release does not name its query.

    Notes
    -----
    Each simulated data set goes through the query itself, with its clamping and its rounding, gets fresh
    noise with the distribution that the release names, and is estimated as the release was. The interval is
    the estimate less the upper and the lower quantile of the draws' errors. Post-processing of the release,
    free of charge: no record is read.

    Coverage is right in the limit of many records if the population is of the model, the estimate is
    consistent, and noise is small beside sampling. It promises nothing where clamping moves the estimate away
    from the parameter: the bootstrap sees how clamping biases estimates at the wrong parameters, not at the
    true ones. Estimate what the clamped data say of the parameter, or use wider bounds; `docs/adaptive.md`
    shows the coverage of both.

    References
    ----------
    Ferrando, Wang, Sheldon, "Parametric bootstrap for differentially private confidence intervals" (AISTATS
    2022).

    Examples
    --------
    >>> from sfumato.mechanisms import BoundedSum, Laplace
    >>> from sfumato.privacy import Neighboring
    >>> visits = np.random.default_rng(0).poisson(3.0, 1000)
    >>> query = BoundedSum(bounds=(0, 15))
    >>> noisy = Laplace.for_query(query, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE)
    >>> found = parametric_bootstrap(
    ...     noisy.release(visits, rng=1),
    ...     estimate=lambda release: max(0.0, release.value / 1000),
    ...     simulate=lambda rate, generator: generator.poisson(rate, 1000),
    ...     rng=2,
    ... )
    >>> bool(found.lower < 3.0 < found.upper), round(float(found.standard_error), 2)
    (True, 0.06)
    """
    releases = [_named(one) for one in ([release] if isinstance(release, LatticeRelease) else release)]
    if not releases:
        _check.refuse("release", "be one or more releases", release, _REMEDY)
    error = 1 - _check.unit_interval("level", level)
    number, generator = null_draws(draws, rng)
    wanted = quantity if quantity is not None else lambda parameters: parameters
    parameters = estimate(*releases)
    center = np.asarray(wanted(parameters), dtype=np.float64)
    drawn = np.empty((number, *center.shape))
    for row in range(number):
        data = simulate(parameters, generator)
        parts = data if len(releases) > 1 else (data,)
        if not isinstance(parts, tuple | list) or len(parts) != len(releases):
            remedy = f"return a tuple of {len(releases)}"
            _check.refuse_type("simulate", "return data for each release", data, remedy)
        again = [_released(one, part, generator) for one, part in zip(releases, parts, strict=True)]
        drawn[row] = np.asarray(wanted(estimate(*again)), dtype=np.float64)
    errors = drawn - center
    above, below = exceeded_by(errors, error / 2), -exceeded_by(-errors, error / 2)
    ends = center - above, center - below, errors.std(axis=0, ddof=1), errors.mean(axis=0)
    return BootstrapInterval(*(one[()] for one in (center, *(np.asarray(end) for end in ends))))


def _named(release: object) -> LatticeRelease:
    """Return a release of a query, or refuse what is none."""
    if not isinstance(release, LatticeRelease) or not isinstance(release.query, Query):
        _check.refuse_type("release", "be of a query that it names", release, _REMEDY)
    return release


def _released(release: LatticeRelease, data: Any, generator: np.random.Generator) -> LatticeRelease:
    """Return what the release would have been of other data, with fresh noise of the same distribution."""
    query: Any = release.query
    exact = query.drawn_steps(data, random_source(generator))
    shape = exact.shape if isinstance(exact, np.ndarray) else None
    noise = release.distribution.sample(shape, generator)
    return replace(release, steps=exact + noise, receipt=None, simulated=True)
