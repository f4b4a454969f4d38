"""The error of a synthetic table's marginals as a query, to be measured with noise and paid for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.grid import LIMIT
from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.privacy.neighboring import Neighboring
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.marginals.contingency import contingency_table
from sfumato.synthetic.marginals.table_counts import LARGEST_COUNT, table_counts
from sfumato.synthetic.marginals.workload import Clique, Marginals
from sfumato.synthetic.quality.encoded_rows import encoded, rows_of

__all__ = ["WorkloadError"]

_CELLS: Final = 1 << 24
_FACTOR: Final = 1 << 20
_LOW: Final = (1 << 30) - 1


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorkloadError(Query):
    r"""Total variation distance of a synthetic table's marginals from the real ones: their mean, or each.

    Parameters
    ----------
    domain : TableDomain
    synthetic : frame, released model, or int64 array of shape (rows, columns)
        The synthetic rows: a release, or public; an array holds cells, as ``domain.encode`` returns them.
        Rows of a model are drawn once.
    workload : Marginals
        The marginals, each of at most 2**24 cells; without weights, prefixes and ranges.
    rows : int, optional
        How many real rows there are: a released or a public number, never one read off the data. The number
        of synthetic rows unless given: a generator makes as many as it has measured.
    by_table : bool
        Whether the answer is the distance of each marginal; else it is their mean.

    Raises
    ------
    ParameterError
        If the synthetic table has no row in the domain, or a marginal is too large.

    Notes
    -----
    With N = ``rows`` and q the synthetic proportions, the distance of a marginal M of the real rows is
    :math:`\sum_x |M(x) - N q(x)| / (2N)`. It is the total variation distance where there are N real rows, and
    differs from it by at most :math:`|n - N| / (2N)` where there are n.

    Sensitivity: a row is in one cell of a marginal, or in none. Adding, removing or zeroing it moves one
    :math:`M(x)` by 1, so by the reverse triangle inequality the sum by at most 1; replacing it moves two of
    them, and the sum by at most 2; that of a table with one cell, the number of rows, by at most 1, and by
    0 if both rows are counted. Every marginal may move so far, thus of K marginals the mean moves by at
    most 1/(2N), or 1/N, and the vector of distances as much in each of K entries. The answer is exact in
    steps of a whole part of that, as :math:`N q(x)` is a rational number.

    Guarantee: that of the mechanism which measures it. Conditions: each unit has at most one row, and domain,
    workload, synthetic table and ``rows`` are public or released; what these cost is charged besides.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.mechanisms import Laplace
    >>> domain = TableDomain(sex=["f", "m"], smokes=["no", "yes"])
    >>> real = pa.table({"sex": ["f", "m"] * 500, "smokes": ["no", "yes"] * 500})
    >>> synthetic = pa.table({"sex": ["f", "m"] * 500, "smokes": ["no", "no", "yes", "yes"] * 250})
    >>> query = WorkloadError(domain=domain, synthetic=synthetic, workload=Marginals.every(2))
    >>> query(real)
    0.5
    >>> measurement = Laplace.for_query(query, epsilon=0.1)
    >>> measurement.privacy_loss.epsilon()
    0.1
    >>> 0.45 < query.estimate(measurement.release(real, rng=1)) < 0.55
    True
    """

    domain: TableDomain
    synthetic: Any = field(repr=False)
    workload: Marginals
    rows: int | None = None
    by_table: bool = False

    def __post_init__(self) -> None:
        _check.instance("domain", self.domain, TableDomain, "declare one with sfumato.synthetic.TableDomain")
        _check.instance("workload", self.workload, Marginals, "write Marginals.every(2), say")
        if self.workload.weights is not None:
            _check.refuse("workload", "have no weights", self.workload, "pass by_table=True and weigh them")
        if self.workload.ordered:
            remedy = "leave out with_prefixes and with_ranges"
            _check.refuse("workload", "ask for cells, whose distance this is", self.workload, remedy)
        if not isinstance(self.by_table, bool):
            _check.refuse("by_table", "be True or False", self.by_table, "leave it out for the mean")
        sizes = self.domain.sizes
        if any(math.prod(sizes[place] for place in clique) > _CELLS for clique in self._cliques):
            _check.refuse_state(
                "workload", f"be of tables of at most {_CELLS} cells", "one has more", "take fewer columns"
            )
        codes = encoded("synthetic", self.domain, rows_of("synthetic", self.synthetic))
        if not len(codes):
            _check.refuse_state("synthetic", "have rows in the domain", "it has none", "check its columns")
        rows = len(codes) if self.rows is None else _check.integer("rows", self.rows, minimum=1)
        if rows > LARGEST_COUNT or len(codes) // math.gcd(rows, len(codes)) > _FACTOR:
            found = f"{rows} rows over {len(codes)} have no such ratio"
            remedy = "sample as many synthetic rows as rows says, or a round part of them"
            _check.refuse_state("rows", f"be at most 2**38, and a multiple of 1/{_FACTOR}", found, remedy)
        object.__setattr__(self, "synthetic", codes)
        object.__setattr__(self, "rows", rows)

    @property
    def step(self) -> Fraction:
        """What one step is worth."""
        tables = 1 if self.by_table else len(self._cliques)
        return Fraction(1, 2 * self._number * self._factors[0] * tables)

    @property
    def entries(self) -> int:
        """One number, or one for each marginal."""
        return len(self._cliques) if self.by_table else 1

    @property
    def labels(self) -> Mapping[str, Sequence[str]] | None:
        """The columns of each marginal, where each has an entry."""
        if not self.by_table:
            return None
        names = list(self.domain)
        return {"columns": [", ".join(names[place] for place in clique) for clique in self._cliques]}

    def steps(self, data: Any) -> int | NDArray[np.int64]:
        """Return the exact answer in steps.

        Parameters
        ----------
        data : frame or TableCounts
            The real rows; those that are not in the domain are left out.

        Returns
        -------
        int, or array of int64 of shape (entries,)
            In steps of `step`; private.
        """
        source, sizes, (scale, share) = table_counts(self.domain, data), self.domain.sizes, self._factors
        found = []
        for clique in self._cliques:
            wanted = contingency_table(self.synthetic, sizes, clique) * share
            off = np.abs(np.minimum(source.counts(clique), LARGEST_COUNT) * scale - wanted)
            # In two halves: a sum of many cells may be beyond int64. A limit moves no two answers apart.
            found.append(min(LIMIT, (int((off >> 30).sum()) << 30) + int((off & _LOW).sum())))
        return np.array(found, np.int64) if self.by_table else min(LIMIT, sum(found))

    def shift(self, neighboring: Neighboring) -> Shift:
        """Return how far one row moves the answer.

        Parameters
        ----------
        neighboring : Neighboring
            Who may change, and how.

        Returns
        -------
        Shift
            In steps of `step`, in every norm.
        """
        sizes, unit, tables = self.domain.sizes, self._factors[0], len(self._cliques)
        # A replaced row moves two cells, of a table that has two, or one, if it is not counted any more.
        two = sum(math.prod(sizes[place] for place in clique) > 1 for clique in self._cliques)
        two *= neighboring is Neighboring.REPLACE_ONE
        l1, l2_squared = unit * max(tables, 2 * two), unit**2 * max(tables, 4 * two)
        if not self.by_table:
            return Shift.entries(1, l1)
        return Shift(l0=tables, l1=l1, l2_squared=l2_squared, linf=unit * (2 if two else 1))

    def estimate(self, release: LatticeRelease) -> Any:
        """Return the distances, none of them below 0 or above 1; post-processing.

        Parameters
        ----------
        release : LatticeRelease
            Of this query.

        Returns
        -------
        float, or float64 array of shape (entries,)
        """
        found = np.clip(self.check_release(release).value, 0.0, 1.0)
        return found if self.by_table else float(found)

    def k_marginal_score(self, release: LatticeRelease) -> float:
        """Return NIST's k-marginal score: 1000 times one less the mean distance; post-processing.

        Parameters
        ----------
        release : LatticeRelease
            Of this query.

        Returns
        -------
        float
            From 0 to 1000.
        """
        return 1000 * (1 - float(np.mean(self.estimate(release))))

    @property
    def _cliques(self) -> tuple[Clique, ...]:
        return self.workload.cliques(self.domain)

    @property
    def _number(self) -> int:
        return self.rows or len(self.synthetic)

    @property
    def _factors(self) -> tuple[int, int]:
        """What real and synthetic counts are multiplied by: the smallest whole numbers of that ratio."""
        common = math.gcd(self._number, len(self.synthetic))
        return len(self.synthetic) // common, self._number // common
