"""Test results, and bounds on the tail probability of a statistic with noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import NeighboringMismatch
from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.release import LatticeRelease, Release
from sfumato.numerics.distributions.discrete import SymmetricDistribution
from sfumato.numerics.interval import Interval
from sfumato.privacy.neighboring import Neighboring

__all__ = [
    "LARGEST",
    "HypothesisTestResult",
    "Tail",
    "check_counts",
    "noisy_tail_probability",
    "public_size",
    "size_of_release",
]

_Array = NDArray[np.float64]
Tail: TypeAlias = Callable[[_Array], _Array]
"""From whole numbers x to the probabilities that a statistic is at least x; each to one part in 1e9."""

_CELLS: Final = 1 << 14
_FAR: Final = 1e-20
_SLACK: Final = 1e-9
LARGEST: Final = 1 << 38
"""More records than any data has."""


class HypothesisTestResult(NamedTuple):
    """The result of a test.

    Attributes
    ----------
    statistic : float
        The noisy statistic.
    p_value : float
        Rounded up: under the null hypothesis it is at most x with probability at most x, over sampling and
        noise, for every x.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Count, Laplace, binomial_test
    >>> measured = Laplace.for_query(Count(), epsilon=1.0, neighboring=Neighboring.REPLACE_ONE)
    >>> result = binomial_test(measured.release(np.ones(580), rng=1), n=1000, proportion=0.5)
    >>> result.p_value < 0.001
    True
    """

    statistic: float
    p_value: float


class _Cells(NamedTuple):
    """The noise, cut: from ``first`` to ``last`` inclusive, with bounds on its probability there."""

    first: _Array
    last: _Array
    minimum: _Array
    maximum: _Array


def public_size(n: object) -> int:
    """Return how many records there are, where that is public, or refuse what no data has."""
    remedy = "pass how many records there are; it must be public"
    size = _check.integer("n", n, minimum=1, remedy=remedy)
    return size if size <= LARGEST else _check.refuse("n", "be at most 2**38", n, remedy)


def size_of_release(release: Release, n: object, remedy: str = "") -> int:
    """Return the public number of records that a release was made of.

    Parameters
    ----------
    release : Release
    n : int
    remedy : str
        What else helps than to release under replace-one.

    Returns
    -------
    int

    Raises
    ------
    NeighboringMismatch
        If the release is under add/remove. Two tables of which one has a record more differ in n as well, so
        whoever publishes n loses that guarantee; a replaced record may cost twice its epsilon.
    ParameterError
        If n is no number of records.
    """
    if release.neighboring is Neighboring.ADD_REMOVE:
        rule, found = "be under replace-one or zero-out where n is public", f"it is for {release.neighboring}"
        action = "pass neighboring=Neighboring.REPLACE_ONE to the mechanism"
        action += f", or {remedy}" if remedy else ""
        _check.refuse_state("release", rule, found, action, error=NeighboringMismatch)
    return public_size(n)


def check_counts(release: LatticeRelease) -> None:
    """Refuse a release of a query that is known to count no records."""
    if isinstance(release.query, Query) and not release.query.counts_records:
        found = f"it is of a {type(release.query.before_transformations()).__name__}"
        _check.refuse_state("release", "be of counts of records", found, "release a Histogram or a Count")


def noisy_tail_probability(tail: Tail, distribution: SymmetricDistribution, x: int) -> Interval:
    """Bound the probability that a statistic and independent noise are together at least x.

    Parameters
    ----------
    tail : callable
        Of the statistic.
    distribution : SymmetricDistribution
        Of the noise, in the steps of the statistic.
    x : int

    Returns
    -------
    Interval
        A tail falls, so within a cell of the noise it lies between its values at the ends. As narrow as 2**14
        cells allow: exact, but for rounding, where the noise has fewer values.
    """
    cells = _cells(distribution)
    minimum = float((cells.minimum * tail(x - cells.first)).sum()) * (1 - _SLACK)
    maximum = float((cells.maximum * tail(x - cells.last)).sum()) * (1 + _SLACK)
    return Interval(max(0.0, minimum), min(1.0, maximum))


@lru_cache(maxsize=16)
def _cells(distribution: SymmetricDistribution) -> _Cells:
    reach = distribution.quantile_above(_FAR)
    width = max(1, math.ceil((2 * reach + 1) / _CELLS))
    first = np.arange(-reach, reach + 1, width)
    tails = [distribution.upper_tail(int(index)) for index in [*first.tolist(), int(first[-1]) + width]]
    above = np.array([[bounds.lower, bounds.upper] for bounds in tails])
    minimum, maximum = above[:-1, 0] - above[1:, 1], above[:-1, 1] - above[1:, 0]
    # What lies further out than all cells: below them it helps nothing, above them it always passes.
    begin = np.concatenate([first.astype(float), [float(first[-1]) + width]])
    end = np.concatenate([first + width - 1.0, [math.inf]])
    below = 1 - above[0, 0]
    return _Cells(
        np.append(begin, -math.inf),
        np.append(end, float(first[0]) - 1),
        np.append(np.append(np.maximum(minimum, 0.0), above[-1, 0]), 0.0),
        np.append(np.append(maximum, above[-1, 1]), below),
    )
