"""Chi-square tests on noisy tables, against draws of what the null hypothesis and the noise give together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.lattice_release import LatticeRelease
from sfumato.mechanisms.statistics.noisy_tail import Significance, size_beside

__all__ = ["goodness_of_fit", "independence_test"]

_Array = NDArray[np.float64]
_DRAWS: Final = 9999


def goodness_of_fit(
    release: LatticeRelease,
    *,
    n: int,
    shares: Any,
    draws: int = _DRAWS,
    rng: int | np.random.Generator | None = None,
) -> Significance:
    """Test whether records fall into categories with given probabilities.

    Parameters
    ----------
    release : LatticeRelease
        Noisy counts of the categories, of shape (k,), under replace-one or zero-out.
    n : int
        How many records there are, public.
    shares : array of shape (k,)
        Probabilities of the null hypothesis; they sum to 1.
    draws : int
        How many tables are drawn under the null hypothesis; at least 19.
    rng : None, int or numpy Generator
        For these draws; they protect nobody and need no secrecy.

    Returns
    -------
    Significance
        The statistic sums squared distances from the expected counts, each over its variance by sampling and
        noise. Its p-value is the rank of the statistic among those of the drawn tables.

    Raises
    ------
    NeighboringMismatch
        If the release is under add/remove: where n is public, neighbors have the same n.

    Notes
    -----
    Post-processing of the release: its guarantee stays, that of a replaced or a zeroed record. Under the null
    hypothesis the statistic and those that are drawn are exchangeable, so the p-value is at most x with
    probability at most x, for every x (Barnard 1963).

    References
    ----------
    Gaboardi, Lim, Rogers, Vadhan, "Differentially private chi-squared hypothesis testing" (ICML 2016).

    Examples
    --------
    >>> from sfumato.mechanisms import Histogram, Laplace
    >>> from sfumato.privacy import Neighboring
    >>> faces = Histogram(categories=(1, 2, 3, 4, 5, 6))
    >>> die = Laplace.for_query(faces, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE)
    >>> fair = die.release(np.random.default_rng(0).integers(1, 7, 600), rng=1)
    >>> loaded = die.release(np.repeat([1, 2, 3, 4, 5, 6], [60, 80, 90, 100, 120, 150]), rng=1)
    >>> [goodness_of_fit(x, n=600, shares=np.full(6, 1 / 6), rng=2).p_value < 0.01 for x in (fair, loaded)]
    [False, True]
    """
    counts, size = _table(release, 1), size_beside(release, n)
    try:
        given = np.asarray(shares, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.zeros(0)
    if given.shape != counts.shape or not (given >= 0).all() or abs(float(given.sum()) - 1) > 1e-9:
        rule = f"be {counts.size} probabilities that sum to 1"
        _check.refuse("shares", rule, shares, "pass one for each category")
    expected = size * given / given.sum()
    spread = expected * (1 - given) + release.stddev**2

    def statistic(tables: _Array) -> _Array:
        return np.asarray(((tables - expected) ** 2 / spread).sum(axis=-1))

    return _ranked(statistic, counts, given / given.sum(), size=size, release=release, draws=draws, rng=rng)


def independence_test(
    release: LatticeRelease,
    *,
    n: int,
    draws: int = _DRAWS,
    rng: int | np.random.Generator | None = None,
) -> Significance:
    """Test whether the rows and the columns of a table are independent.

    Parameters
    ----------
    release : LatticeRelease
        Noisy counts, of shape (r, c), both at least 2, under replace-one or zero-out.
    n : int
        How many records there are, public.
    draws, rng
        As in `goodness_of_fit`.

    Returns
    -------
    Significance
        As `goodness_of_fit`, but the margins of the null hypothesis are not known: they are estimated, of the
        release and of each drawn table anew, so the size is right in the limit of many records only.

    Raises
    ------
    NeighboringMismatch
        As in `goodness_of_fit`.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> from sfumato.privacy import Neighboring
    >>> table = Laplace.calibrated(  # a replaced record moves two entries by one each
    ...     sensitivity=1, l0=2, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE
    ... )
    >>> even, skewed = np.array([[200, 300], [202, 298]]), np.array([[200, 300], [300, 200]])
    >>> [independence_test(table.release(x, rng=1), n=1000, rng=2).p_value < 0.01 for x in (even, skewed)]
    [False, True]
    """
    counts, size = _table(release, 2), size_beside(release, n)
    if min(counts.shape) < 2:
        _check.refuse("release", "have at least two rows and two columns", counts.shape)
    noise = release.stddev**2

    def margins(tables: _Array) -> _Array:
        rows, columns = (np.maximum(tables.sum(axis=axis), 0.5) for axis in (-1, -2))
        rows, columns = (part / part.sum(axis=-1, keepdims=True) for part in (rows, columns))
        return np.asarray(rows[..., :, None] * columns[..., None, :])

    def statistic(tables: _Array) -> _Array:
        expected = size * margins(tables)
        return np.asarray(((tables - expected) ** 2 / (expected + noise)).sum(axis=(-1, -2)))

    return _ranked(statistic, counts, margins(counts), size=size, release=release, draws=draws, rng=rng)


def _ranked(
    statistic: Callable[[_Array], _Array],
    counts: _Array,
    shares: _Array,
    *,
    size: int,
    release: LatticeRelease,
    draws: int,
    rng: int | np.random.Generator | None,
) -> Significance:
    number = _check.integer("draws", draws, minimum=19, remedy="fewer can refuse nothing at 0.05")
    if rng is not None and not isinstance(rng, np.random.Generator):
        _check.integer("rng", rng)
    generator = np.random.default_rng(rng)
    drawn = generator.multinomial(size, shares.ravel(), number).reshape(number, *counts.shape)
    noise = np.asarray(release.law.sample(drawn.shape, generator)) * float(release.step)
    value = float(statistic(counts))
    passed = int((statistic(drawn + noise) >= value).sum())
    return Significance(value, (1 + passed) / (1 + number))


def _table(release: LatticeRelease, axes: int) -> _Array:
    given: object = release
    if not isinstance(given, LatticeRelease) or np.ndim(given.steps) != axes or not np.size(given.steps):
        rule = f"hold noisy counts with {axes} {'axis' if axes == 1 else 'axes'}"
        _check.refuse("release", rule, type(given), "release a table of counts")
    return np.asarray(given.value, dtype=np.float64)
