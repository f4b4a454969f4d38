"""Chi-square tests of goodness of fit and independence on noisy tables, by Monte Carlo."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.statistics.hypothesis_test.p_value import (
    LARGEST,
    HypothesisTestResult,
    check_counts,
    size_of_release,
)
from sfumato.mechanisms.statistics.null_draws import drawn_noise, null_draws, rank_among

__all__ = ["goodness_of_fit", "independence_test"]

_Array = NDArray[np.float64]
_DRAWS: Final = 9999
_REMEDY: Final = "leave n out: the noisy counts estimate their total"
_GIVEN_AWAY: Final = 0.05
_AT_ONCE: Final = 300
_ROUNDING: Final = 1e-9


def goodness_of_fit(
    release: LatticeRelease,
    *,
    n: int | None = None,
    shares: Any,
    draws: int = _DRAWS,
    rng: int | np.random.Generator | None = None,
) -> HypothesisTestResult:
    """Test whether records fall into categories with given probabilities.

    Parameters
    ----------
    release : LatticeRelease
        Noisy counts of the categories, of shape (k,).
    n : int, optional
        How many records there are, where that is public: the release must be under replace-one or zero-out.
        Unless given, the number stays private, and what the noisy counts reveal of it is used.
    shares : array of shape (k,)
        Probabilities of the null hypothesis; they sum to 1.
    draws : int
        How many tables are drawn under the null hypothesis; at least 19, or 39 without n.
    rng : None, int or numpy Generator
        For these draws; they protect nobody and need no secrecy.

    Returns
    -------
    HypothesisTestResult
        The statistic sums squared distances from the expected counts, each over its variance by sampling and
        noise. Its p-value is the rank of the statistic among those of the drawn tables.

    Raises
    ------
    NeighboringMismatch
        If n is given and the release is under add/remove: where n is public, neighbors have the same n.

    Notes
    -----
    Post-processing of the release. Under the null hypothesis the statistic and those that are drawn are
    exchangeable, so the p-value is at most x with probability at most x, for every x (Barnard 1963).

    Without n the p-value is the greatest over all numbers of records that the noisy total allows: those that
    are off by no more than the largest of the drawn noises' totals. The truth is not among them with
    probability at most one over the number of tables, drawn and seen, by exchangeability again; this is added
    to the p-value (Berger, Boos 1994). In the statistic the noisy total stands for n, so that it hardly
    depends on which number is true. Where the noise is large many numbers are tried at once, by a bound on
    the statistic that holds for all of them.

    References
    ----------
    Berger, Boos, "P values maximized over a confidence set for the nuisance parameter" (JASA 1994).
    Gaboardi, Lim, Rogers, Vadhan, "Differentially private chi-squared hypothesis testing" (ICML 2016).

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Histogram, Laplace
    >>> from sfumato.privacy import Neighboring
    >>> faces = Histogram(categories=(1, 2, 3, 4, 5, 6))
    >>> die = Laplace.for_query(faces, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE)
    >>> fair = die.release(np.random.default_rng(0).integers(1, 7, 600), rng=1)
    >>> loaded = die.release(np.repeat([1, 2, 3, 4, 5, 6], [60, 80, 90, 100, 120, 150]), rng=1)
    >>> [goodness_of_fit(x, n=600, shares=np.full(6, 1 / 6), rng=2).p_value < 0.01 for x in (fair, loaded)]
    [False, True]

    Nobody needs to know how many records there are:

    >>> die = Laplace.for_query(faces, epsilon=1.0)  # for a record that is added or removed
    >>> fair = die.release(np.random.default_rng(0).integers(1, 7, 600), rng=1)
    >>> loaded = die.release(np.repeat([1, 2, 3, 4, 5, 6], [60, 80, 90, 100, 120, 150]), rng=1)
    >>> [goodness_of_fit(x, shares=np.full(6, 1 / 6), rng=2).p_value < 0.01 for x in (fair, loaded)]
    [False, True]
    """
    counts, size = _table(release, 1), _size(release, n)
    try:
        given = np.asarray(shares, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.zeros(0)
    if given.shape != counts.shape or not (given >= 0).all() or abs(float(given.sum()) - 1) > 1e-9:
        rule = f"be {counts.size} probabilities that sum to 1"
        _check.refuse("shares", rule, shares, "pass one for each category")
    given, noise = given / given.sum(), release.stddev**2

    def statistic(tables: _Array) -> _Array:
        expected = (_totals(tables, -1) if size is None else size) * given
        return np.asarray(((tables - expected) ** 2 / (expected * (1 - given) + noise)).sum(axis=-1))

    if size is None:
        return _ranked_over_totals(statistic, counts, given, release=release, draws=draws, rng=rng)
    return _ranked(statistic, counts, given, size=size, release=release, draws=draws, rng=rng)


def independence_test(
    release: LatticeRelease,
    *,
    n: int | None = None,
    draws: int = _DRAWS,
    rng: int | np.random.Generator | None = None,
) -> HypothesisTestResult:
    """Test whether the rows and the columns of a table are independent.

    Parameters
    ----------
    release : LatticeRelease
        Noisy counts, of shape (r, c), both at least 2.
    n : int, optional
        As in `goodness_of_fit`.
    draws : int
        At least 19.
    rng
        As in `goodness_of_fit`.

    Returns
    -------
    HypothesisTestResult
        As `goodness_of_fit`, but the margins of the null hypothesis are not known: they are estimated, of the
        release and of each drawn table anew, and so is a private number of records. So the size is right in
        the limit of many records only.

    Raises
    ------
    NeighboringMismatch
        As in `goodness_of_fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Laplace
    >>> from sfumato.privacy import Neighboring
    >>> even, skewed = np.array([[200, 300], [202, 298]]), np.array([[200, 300], [300, 200]])
    >>> table = Laplace.calibrated(sensitivity=1, epsilon=1.0)
    >>> [independence_test(table.release(x, rng=1), rng=2).p_value < 0.01 for x in (even, skewed)]
    [False, True]

    Where n is public a record may be replaced, which moves two counts:

    >>> table = Laplace.calibrated(
    ...     sensitivity=1, l0=2, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE
    ... )
    >>> [independence_test(table.release(x, rng=1), n=1000, rng=2).p_value < 0.01 for x in (even, skewed)]
    [False, True]
    """
    counts, size = _table(release, 2), _size(release, n)
    if min(counts.shape) < 2:
        _check.refuse_type(
            "release", "have at least two rows and two columns", counts, "take goodness_of_fit for one row"
        )
    noise = release.stddev**2

    def margins(tables: _Array) -> _Array:
        rows, columns = (np.maximum(tables.sum(axis=axis), 0.5) for axis in (-1, -2))
        rows, columns = (part / part.sum(axis=-1, keepdims=True) for part in (rows, columns))
        return np.asarray(rows[..., :, None] * columns[..., None, :])

    def statistic(tables: _Array) -> _Array:
        expected = (_totals(tables, (-2, -1)) if size is None else size) * margins(tables)
        return np.asarray(((tables - expected) ** 2 / (expected + noise)).sum(axis=(-1, -2)))

    total = min(LARGEST, round(float(_totals(counts, (-2, -1)).item()))) if size is None else size
    return _ranked(statistic, counts, margins(counts), size=total, release=release, draws=draws, rng=rng)


def _ranked(
    statistic: Callable[[_Array], _Array],
    counts: _Array,
    shares: _Array,
    *,
    size: int,
    release: LatticeRelease,
    draws: int,
    rng: int | np.random.Generator | None,
) -> HypothesisTestResult:
    number, generator = null_draws(draws, rng)
    drawn = generator.multinomial(size, shares.ravel(), number).reshape(number, *counts.shape)
    value = float(statistic(counts))
    found = statistic(drawn + drawn_noise(release, drawn.shape, generator))
    return HypothesisTestResult(value, rank_among(value * (1 - _ROUNDING), found))


def _ranked_over_totals(
    statistic: Callable[[_Array], _Array],
    counts: _Array,
    shares: _Array,
    *,
    release: LatticeRelease,
    draws: int,
    rng: int | np.random.Generator | None,
) -> HypothesisTestResult:
    r"""Return the greatest p-value over the numbers of records that the noisy total allows.

    Notes
    -----
    For one number N the drawn tables are N records and noise. As N grows, records are added to the same
    tables, so for each N they have the distribution that they should. Numbers are taken in runs: let a table
    have c at the first N of a run and c + y later, with j further records. The residual from what is
    expected, :math:`c - m p` for m the total or 1 where that is less, moves by :math:`y - t p` with t from 0
    to j, and each variance rises from at least :math:`\sigma^2`. So the root of the statistic rises by at
    most :math:`\sqrt 2 j/\sigma`: the norm of :math:`y - t p` is convex in t, j at most for t = 0, and for t
    = j it is that of a sum of j differences of a unit vector and a distribution. A run is as long as costs
    ``_GIVEN_AWAY``, or longer where there would be more than ``_AT_ONCE`` of them.
    """
    number, generator = null_draws(draws, rng, minimum=39)
    noise = drawn_noise(release, (number, counts.size), generator)
    reach, total = float(np.abs(noise.sum(axis=-1)).max()), float(counts.sum())
    first = min(LARGEST, max(0, math.floor(total - reach)))
    last = min(LARGEST, max(0, math.ceil(total + reach)))
    run = 1 + max(int(_GIVEN_AWAY * release.stddev / math.sqrt(2)), (last - first) // _AT_ONCE)
    value = float(statistic(counts))
    root = max(0.0, math.sqrt(value) - math.sqrt(2) * (run - 1) / release.stddev)
    drawn, passed = generator.multinomial(first, shares, number), 0
    for _ in range(first, last + 1, run):
        passed = max(passed, int((statistic(drawn + noise) >= root**2 * (1 - _ROUNDING)).sum()))
        drawn = drawn + generator.multinomial(run, shares, number)
    return HypothesisTestResult(value, min(1.0, (2 + passed) / (1 + number)))


def _size(release: LatticeRelease, n: int | None) -> int | None:
    return None if n is None else size_of_release(release, n, _REMEDY)


def _totals(tables: _Array, axes: int | tuple[int, int]) -> _Array:
    """Return how many records tables seem to hold, with axes of length 1; at least one."""
    return np.asarray(np.maximum(tables.sum(axis=axes, keepdims=True), 1.0))


def _table(release: LatticeRelease, axes: int) -> _Array:
    given: object = release
    if not isinstance(given, LatticeRelease) or np.ndim(given.steps) != axes or not np.size(given.steps):
        rule = f"hold noisy counts with {axes} {'axis' if axes == 1 else 'axes'}"
        _check.refuse_type("release", rule, given, "release a table of counts")
    check_counts(given)
    return np.asarray(given.value, dtype=np.float64)
