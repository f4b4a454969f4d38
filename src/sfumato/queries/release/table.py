"""The released table: what an analyst gets back from a private SELECT."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato import _check
from sfumato.errors import MissingExtra
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.receipt import Receipt
from sfumato.queries.plan.query import AggregateKind, ColumnType, FoundBounds, Named
from sfumato.queries.plan.schema import ARROW_TYPES
from sfumato.queries.plan.typed_expressions import NUMERIC
from sfumato.queries.pricing.price import PricedQuery
from sfumato.queries.release.display import as_html, as_text, printable
from sfumato.queries.release.estimates import as_arrow_array, interval, reports
from sfumato.queries.release.estimates import values as values_of
from sfumato.queries.release.explanation import explain
from sfumato.queries.release.postprocessing import column_types, ends, evaluate, named_columns, parsed
from sfumato.queries.release.record import ComputedColumn, ReleaseRecord
from sfumato.queries.sql.clauses.answer_expressions import released_type

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["TableRelease", "with_computed"]


@final
@dataclass(frozen=True, slots=True)
class TableRelease:
    """A differentially private table, with its error, its loss and its receipt; it holds no raw data.

    Parameters
    ----------
    record : ReleaseRecord
        The noised integers and the public facts about them.
    receipt : Receipt or None
        The ledger's receipt of the charge; None where a committed release was read back.
    priced : PricedQuery
        The query with its noise, from which `explain` makes its sentences.
    replayed : bool
        True if this very query had been answered before: the same bytes again, free of charge.

    Notes
    -----
    Guarantee: ``(epsilon, delta)``-DP of this answer alone, under adding or removing one privacy unit; what
    the ledger was charged is ``loss``.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> with sf.connect(pa.table({"n": range(1000)}), privacy_unit=sf.ROW, epsilon=1.0, rng=1) as session:
    ...     release = session.sql(
    ...         "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0) COUNT(*) AS people FROM data"
    ...     )
    >>> release.to_arrow(intervals=True).column_names, release.epsilon
    (['people', 'people_lower', 'people_upper'], 1.0)
    """

    record: ReleaseRecord
    receipt: Receipt | None
    priced: PricedQuery = field(repr=False)
    replayed: bool = False

    def __repr__(self) -> str:
        names = printable(", ".join(self.columns))
        return f"TableRelease({self.to_arrow().num_rows} of ({names}); {printable(self._promise)})"

    def __str__(self) -> str:
        return as_text(self.to_arrow(), self._promise, self.record.keys)

    def _repr_html_(self) -> str:
        return as_html(self.to_arrow(), self._promise, self.record.keys)

    @property
    def _promise(self) -> str:
        made = f"({self.epsilon:g}, {self.delta:g})-DP for each {self.privacy_unit}"
        return f"simulated, protects nobody: would be {made}" if self.simulated else made

    @property
    def epsilon(self) -> float:
        """Epsilon of this answer alone."""
        return self.record.epsilon

    @property
    def delta(self) -> float:
        """Delta of this answer alone."""
        return self.record.delta

    @property
    def loss(self) -> PrivacyLoss:
        """What was run: the loss that the ledger was charged."""
        return self.record.loss

    @property
    def neighboring(self) -> Neighboring:
        """The relation that is protected: one unit added or removed."""
        return Neighboring.ADD_REMOVE

    @property
    def privacy_unit(self) -> str:
        """Who is protected: the unit column, or the row."""
        return self.record.privacy_unit

    @property
    def simulated(self) -> bool:
        """True if the noise came from a seed, so that nothing is protected."""
        return self.record.simulated

    @property
    def found_bounds(self) -> tuple[FoundBounds, ...]:
        """The bounds that the query left to be found: released, at the query's cost, like all the rest."""
        return self.record.found

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the answer."""
        return self.record.output

    def explain(self) -> str:
        """Say how the answer was made: bounds, noise, threshold, cost, and how wide its intervals are.

        Returns
        -------
        str
            Some lines for people.
        """
        record, loss = self.record, self.priced.loss
        made = explain(self.priced, privacy_unit=record.privacy_unit, found=record.found)
        # the same query is priced the same, but for round-off, unless calibration was improved since
        costs = (each.quick_epsilon(record.delta) for each in (record.loss, loss))
        if math.isclose(*costs, rel_tol=1e-6) and record.threshold == self.priced.threshold:
            return "\n".join((made, *self._widths()))
        other = f"Made by another version, whose noise was another; it charged: {record.loss!r}"
        return "\n".join((made, other, *self._widths()))

    def _widths(self) -> Iterator[str]:
        """Say how wide the intervals are in the middle of the groups."""
        for column in self.record.columns:
            lower, upper = interval(self.record, column, 0.95)
            halves = (np.asarray(upper, np.float64) - np.asarray(lower, np.float64)) / 2
            known = halves[np.isfinite(halves)]
            if known.size:
                groups = f", in the median of {len(lower)} groups" if self.record.keys else ""
                side = f"{np.median(known):.4g} to a side"
                yield f"In this answer: the 95 % interval of {column.name} is {side}{groups}."

    def to_arrow(self, *, intervals: bool = False, level: float = 0.95) -> pa.Table:
        """Return the answer as an Arrow table.

        Parameters
        ----------
        intervals : bool
            Put ``<name>_lower`` and ``<name>_upper`` after every noised column.
        level : float
            Coverage of the intervals, strictly between 0 and 1. Each interval is for the bounded answer; for
            a group that a threshold let through, its count's coverage holds given that it was shown. A
            computed column has ends where they follow from those of its parts, else NULL or none; rows that
            HAVING, or LIMIT after ORDER BY, chose by their noise are covered less often. A column that was
            asked for with ``report_format => 'JSON'`` holds its interval itself.

        Returns
        -------
        pyarrow.Table
        """
        level = _check.unit_interval("level", level, "write 0.95, say")
        given: object = intervals
        if not isinstance(given, bool):
            _check.refuse("intervals", "be True or False", given, "state another coverage by level=")
        noised = {column.name: column for column in self.record.columns}
        computed = {column.name: column for column in self.record.computed}
        made: dict[str, Any] = {}
        for name in self.record.output:
            if name in noised and noised[name].report:
                made[name] = pa.array(reports(self.record, noised[name], level))
                continue
            made[name] = self._column(name)
            if intervals and name in noised:
                made[f"{name}_lower"], made[f"{name}_upper"] = map(
                    _as_array, interval(self.record, noised[name], level)
                )
            elif intervals and name in computed:
                made |= self._computed_interval(computed[name], level)
        return pa.table(list(made.values()), names=list(made)).take(self._shown())

    def to_pandas(self, *, intervals: bool = False, level: float = 0.95) -> pd.DataFrame:
        """Return the answer as a pandas DataFrame; needs the extra ``sfumato[pandas]``.

        Parameters
        ----------
        intervals, level
            As for `to_arrow`.

        Returns
        -------
        pandas.DataFrame
        """
        try:
            import pandas as pd  # noqa: F401, PLC0415 - an optional library
        except ImportError as missing:
            raise MissingExtra("to_pandas needs pandas; pip install 'sfumato[pandas]'") from missing
        frame: pd.DataFrame = self.to_arrow(intervals=intervals, level=level).to_pandas()
        return frame

    def to_polars(self, *, intervals: bool = False, level: float = 0.95) -> pl.DataFrame:
        """Return the answer as a Polars DataFrame; needs the extra ``sfumato[polars]``.

        Parameters
        ----------
        intervals, level
            As for `to_arrow`.

        Returns
        -------
        polars.DataFrame
        """
        try:
            import polars as pl  # noqa: PLC0415 - an optional library
        except ImportError as missing:
            raise MissingExtra("to_polars needs Polars; pip install 'sfumato[polars]'") from missing
        return pl.DataFrame(self.to_arrow(intervals=intervals, level=level))

    def _column(self, name: str) -> pa.ChunkedArray | pa.Array:
        """Return a column by name, shown or not, with a value for every group."""
        for prefix, names in (("k", self.record.keys), ("p", [c.name for c in self.record.computed])):
            if name in names:
                return self.record.table[f"{prefix}{list(names).index(name)}"]
        return _as_array(values_of(self.record, next(c for c in self.record.columns if c.name == name)))

    def _computed_interval(self, computed: ComputedColumn, level: float) -> dict[str, Any]:
        """Return the ends of a computed column, if they follow from those of what it is computed from.

        These hold all at once with probability at least ``level``, by a union bound.
        """
        if computed.type not in NUMERIC:
            return {}
        known = column_types(base := _base(self.record))
        expression = parsed(computed.sql, known)
        named = named_columns(expression)
        noised = [column for column in self.record.columns if column.name in named]
        each = 1 - (1 - level) / max(1, len(noised))
        names = {column.name: (f"{column.name}/low", f"{column.name}/high") for column in noised}
        found = ends(expression, names)
        if found is None or not noised:
            return {}
        for column in noised:
            for name, values in zip(names[column.name], interval(self.record, column, each), strict=True):
                base = base.append_column(name, _as_type(values, known[column.name]))
        low, high = evaluate(base, found)
        both = pc.and_(pc.is_valid(low), pc.is_valid(high))
        none = pa.scalar(None, low.type)
        return {
            f"{computed.name}_lower": pc.if_else(both, low, none),
            f"{computed.name}_upper": pc.if_else(both, high, none),
        }

    def _shown(self) -> pa.Array:
        """Return the rows that are shown, in order: HAVING, ORDER BY, OFFSET, LIMIT."""
        record = self.record
        rows = np.arange(record.table.num_rows)
        if record.having is not None:
            rows = rows[pc.fill_null(self._column(record.having), fill_value=False).to_numpy()]
        # Stable sorts from the last term to the first; the engine's order by key breaks ties.
        for item in reversed(record.order_by):
            column = self._column(item.name).take(pa.array(rows))
            column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            missing = column.is_null().to_numpy(zero_copy_only=False)
            absent, present = np.flatnonzero(missing), np.flatnonzero(~missing)
            order = "descending" if item.descending else "ascending"
            ranks = pc.sort_indices(column.take(pa.array(present)), sort_keys=[("", order)])
            present = present[ranks.to_numpy()]
            parts = (absent, present) if item.nulls_first else (present, absent)
            rows = rows[np.concatenate(parts)]
        last = None if record.limit is None else record.offset + record.limit
        return pa.array(rows[record.offset : last])


def with_computed(record: ReleaseRecord, computed: Sequence[Named]) -> ReleaseRecord:
    """Return a record with the columns that are computed from its released ones."""
    if not computed:
        return record
    made = evaluate(_base(record), [named.expression for named in computed])
    table = record.table
    for index, values in enumerate(made):
        table = table.append_column(f"p{index}", values)
    columns = (ComputedColumn(n.name, n.expression.sql, n.expression.type) for n in computed)
    return replace(record, table=table, computed=tuple(columns))


def _base(record: ReleaseRecord) -> pa.Table:
    """Return keys and noised columns, shown or not, in the types that expressions compute in."""
    columns = {name: record.table[f"k{index}"] for index, name in enumerate(record.keys)}
    for column in record.columns:
        if column.kind is not AggregateKind.QUANTILES:  # an array, which no expression can use
            columns[column.name] = _as_type(values_of(record, column), released_type(column.kind))
    return pa.table(list(columns.values()), names=list(columns))


def _as_array(values: np.ndarray[Any, Any]) -> pa.Array:
    """Return one value for each row; where it is a row of numbers, a list."""
    if values.ndim == 1:
        return as_arrow_array(values)
    ends = np.arange(len(values) + 1, dtype=np.int32) * np.int32(values.shape[1])
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(values.ravel()))


def _as_type(values: np.ndarray[Any, Any], type_: ColumnType) -> pa.Array:
    return as_arrow_array(values).cast(ARROW_TYPES[type_])
