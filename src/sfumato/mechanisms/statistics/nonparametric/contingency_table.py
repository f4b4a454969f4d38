"""Contingency tables: noisy counts, odds ratios, relative risks and risk differences with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.mechanisms.query.counts import Histogram
from sfumato.mechanisms.query.records import as_columns
from sfumato.mechanisms.statistics.hypothesis_test.chi_square import independence_test
from sfumato.mechanisms.statistics.hypothesis_test.p_value import (
    LARGEST,
    HypothesisTestResult,
    size_of_release,
)
from sfumato.mechanisms.statistics.null_draws import exceeded_by, null_draws
from sfumato.privacy.neighboring import Neighboring

__all__ = ["AssociationEstimate", "ContingencyTable"]

_Array = NDArray[np.float64]
_Measure: TypeAlias = Callable[[_Array], tuple[_Array, _Array]]
"""From tables of shape (..., 4) to a number of each, and its gradient."""

_DRAWS: Final = 999
_HALF: Final = 0.5
_REMEDY: Final = "leave n out: the noisy counts estimate their total"


class AssociationEstimate(NamedTuple):
    """An estimated measure of association of two variables.

    Attributes
    ----------
    value : float
    lower, upper : float
        The ends of its interval.
    standard_error : float
        By sampling and noise; of a ratio that of its logarithm.

    Examples
    --------
    >>> ratio = AssociationEstimate(value=2.1, lower=1.4, upper=3.2, standard_error=0.21)
    >>> ratio.lower > 1
    True
    """

    value: float
    lower: float
    upper: float
    standard_error: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ContingencyTable(Query):
    r"""How many records have each pair of values of two variables.

    Parameters
    ----------
    rows, columns : sequence
        The values of the first and of the second variable; public. For ratios the first row is the exposed
        group, the first column those with the outcome. A record with another value counts nowhere.

    Notes
    -----
    Cells are disjoint and a record's cell depends on the record alone, so adding, removing or zeroing it
    moves one count by one (L1 1, L2 1), and replacing it two, one down and one up (L1 2, L2 :math:`\sqrt 2`).

    *Intervals.* A studentized parametric bootstrap: tables of as many records with the estimated shares, and
    fresh noise, estimated as the release was; each around a table that is drawn itself, so that what noise
    hides of the shares is in the interval. Counts are at least 0, and a half is added to each (Haldane,
    Anscombe). Standard errors are by the delta method, for counts of Poisson's variance and the noise's. So
    coverage is right in the limit of counts that are large beside one and the noise's deviation.

    References
    ----------
    Gart, "Alternative analyses of contingency tables" (1966), the half; Ferrando, Wang, Sheldon, "Parametric
    bootstrap for differentially private confidence intervals" (AISTATS 2022).

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Laplace
    >>> cells = [["yes", "ill"], ["yes", "well"], ["no", "ill"], ["no", "well"]]
    >>> data = np.repeat(cells, [60, 140, 30, 270], axis=0)
    >>> table = ContingencyTable(rows=("yes", "no"), columns=("ill", "well"))
    >>> table(data).tolist()
    [[60, 140], [30, 270]]
    >>> release = Laplace.for_query(table, epsilon=1.0).release(data, rng=1)
    >>> value, lower, upper, _ = table.odds_ratio(release, rng=2)
    >>> lower < 60 * 270 / (140 * 30) < upper, upper / lower < 4
    (True, True)
    >>> table.independence(release, rng=2).p_value < 0.01
    True
    """

    rows: Sequence[Hashable]
    columns: Sequence[Hashable]

    def __post_init__(self) -> None:
        for name in ("rows", "columns"):
            given: object = getattr(self, name)
            values = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else ()
            if len(values) < 2 or len(set(values)) < len(values):
                rule = "hold at least two different values"
                _check.refuse(name, rule, given, "pass each value once, from public knowledge")
            object.__setattr__(self, name, values)

    @property
    def step(self) -> int:
        """One."""
        return 1

    @property
    def entries(self) -> int:
        """The cells."""
        return len(self.rows) * len(self.columns)

    @property
    def counts_records(self) -> bool:
        """They are numbers of records."""
        return True

    def steps(self, data: Any) -> NDArray[np.int64]:
        """Return the count of each cell.

        Parameters
        ----------
        data : array, frame or list of rows, of shape (n, 2)
            The two values of each record.

        Returns
        -------
        array of int64, shape (rows, columns)
            Private.
        """
        rows, columns = as_columns(data, 2)
        row = Histogram(categories=self.rows).cells(rows)
        column = Histogram(categories=self.columns).cells(columns)
        cells = (row * len(self.columns) + column)[(row >= 0) & (column >= 0)]
        counts = np.bincount(cells, minlength=self.entries).astype(np.int64)
        return counts.reshape(len(self.rows), len(self.columns))

    def shift(self, neighboring: Neighboring) -> Shift:
        """Return one count by one, or two under replace-one.

        Parameters
        ----------
        neighboring : Neighboring
            Who may change, and how.

        Returns
        -------
        Shift
            In steps of `step`, in every norm.
        """
        return Shift.entries(2 if neighboring is Neighboring.REPLACE_ONE else 1, 1)

    def independence(
        self,
        release: LatticeRelease,
        *,
        n: int | None = None,
        draws: int = 9999,
        rng: int | np.random.Generator | None = None,
    ) -> HypothesisTestResult:
        """Test whether the two variables are independent; see `independence_test`.

        Parameters
        ----------
        release : LatticeRelease
            Of this query.
        n, draws, rng
            As in `independence_test`.

        Returns
        -------
        HypothesisTestResult
        """
        return independence_test(self.check_release(release), n=n, draws=draws, rng=rng)

    def odds_ratio(
        self,
        release: LatticeRelease,
        level: float = 0.95,
        *,
        n: int | None = None,
        draws: int = _DRAWS,
        rng: int | np.random.Generator | None = None,
    ) -> AssociationEstimate:
        """Return the odds ratio of a table of two rows and two columns, with an interval; post-processing.

        Parameters
        ----------
        release : LatticeRelease
            Of this query.
        level : float
            Wanted coverage, strictly between 0 and 1.
        n : int, optional
            How many records are in the table, where that is public: the release must be under replace-one or
            zero-out.
        draws : int
            How many tables are drawn; at least 19.
        rng : None, int or numpy Generator
            For these draws; they need no secrecy.

        Returns
        -------
        AssociationEstimate
            Of the population.

        Raises
        ------
        NeighboringMismatch
            If n is given and the release is under add/remove.
        ParameterError
            If there are more rows or columns than two.
        """
        return self._exponential(self._estimated(_log_odds_ratio, release, level, n=n, draws=draws, rng=rng))

    def relative_risk(
        self,
        release: LatticeRelease,
        level: float = 0.95,
        *,
        n: int | None = None,
        draws: int = _DRAWS,
        rng: int | np.random.Generator | None = None,
    ) -> AssociationEstimate:
        """Return the share of the first column in the first row, over that in the second row.

        Parameters
        ----------
        release, level, n, draws, rng
            As in `odds_ratio`.

        Returns
        -------
        AssociationEstimate
        """
        return self._exponential(
            self._estimated(_log_relative_risk, release, level, n=n, draws=draws, rng=rng)
        )

    def risk_difference(
        self,
        release: LatticeRelease,
        level: float = 0.95,
        *,
        n: int | None = None,
        draws: int = _DRAWS,
        rng: int | np.random.Generator | None = None,
    ) -> AssociationEstimate:
        """Return the share of the first column in the first row, less that in the second row.

        Parameters
        ----------
        release, level, n, draws, rng
            As in `odds_ratio`.

        Returns
        -------
        AssociationEstimate
            From -1 to 1.
        """
        value, lower, upper, error = self._estimated(
            _risk_difference, release, level, n=n, draws=draws, rng=rng
        )
        return AssociationEstimate(value, max(-1.0, lower), min(1.0, upper), error)

    def _exponential(self, found: AssociationEstimate) -> AssociationEstimate:
        value, lower, upper = (math.exp(min(one, 700.0)) for one in found[:3])
        return AssociationEstimate(value, lower, upper, found.standard_error)

    def _estimated(
        self,
        measure: _Measure,
        release: LatticeRelease,
        level: float,
        *,
        n: int | None,
        draws: int,
        rng: int | np.random.Generator | None,
    ) -> AssociationEstimate:
        if (len(self.rows), len(self.columns)) != (2, 2):
            found = f"there are {len(self.rows)} rows and {len(self.columns)} columns"
            remedy = "release a table with the two values of each that are compared"
            _check.refuse_state("rows", "be two, and columns two", found, remedy)
        size = None if n is None else size_of_release(self.check_release(release), n, _REMEDY)
        error, (number, generator) = 1 - _check.unit_interval("level", level), null_draws(draws, rng)
        variance = float(release.stddev) ** 2

        def drawn(around: _Array) -> _Array:
            counts = np.minimum(np.rint(around.sum(axis=-1)), LARGEST).astype(np.int64)
            shares = around / around.sum(axis=-1, keepdims=True)
            exact = generator.multinomial(counts, shares, None if around.ndim > 1 else number)
            noise = np.asarray(release.distribution.sample(exact.shape, generator))
            return _counts(exact + noise, size)

        def studentized(tables: _Array) -> tuple[_Array, _Array]:
            value, gradient = measure(tables)
            return value, np.sqrt((gradient**2 * (tables + variance)).sum(axis=-1))

        seen = _counts(np.asarray(self.check_release(release).value, np.float64).ravel(), size)
        around = drawn(seen)
        (center, scale), (again, errors) = studentized(seen), studentized(drawn(around))
        reach = float(exceeded_by(np.abs(again - measure(around)[0]) / errors, error)) * float(scale)
        middle = float(center)
        return AssociationEstimate(middle, middle - reach, middle + reach, float(scale))


def _counts(noisy: _Array, size: int | None) -> _Array:
    """Return counts of four cells that are at least a half; all together as many as are known to be."""
    if size is not None:
        noisy = noisy + (size - noisy.sum(axis=-1, keepdims=True)) / 4
    return np.maximum(noisy, 0.0) + _HALF


def _log_odds_ratio(tables: _Array) -> tuple[_Array, _Array]:
    sign = np.array([1.0, -1.0, -1.0, 1.0])
    return np.asarray(np.log(tables) @ sign), sign / tables


def _log_relative_risk(tables: _Array) -> tuple[_Array, _Array]:
    share, gradient = _shares(tables)
    value = np.log(share[..., 0]) - np.log(share[..., 1])
    return np.asarray(value), gradient / np.repeat(share, 2, axis=-1) * [1, 1, -1, -1]


def _risk_difference(tables: _Array) -> tuple[_Array, _Array]:
    share, gradient = _shares(tables)
    return np.asarray(share[..., 0] - share[..., 1]), gradient * [1, 1, -1, -1]


def _shares(tables: _Array) -> tuple[_Array, _Array]:
    """Return the share of the first column in both rows, and their derivatives by the four counts."""
    first, second = tables[..., ::2], tables[..., 1::2]
    rows = first + second
    gradient = np.stack([second / rows**2, -first / rows**2], axis=-1)
    return first / rows, gradient.reshape(tables.shape)
