"""The released table: what an analyst gets back from a private SELECT."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato import _check
from sfumato.errors import LedgerError
from sfumato.ledger.view import LedgerView
from sfumato.privacy.decimal_cost import delta_needed
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.receipt import Receipt
from sfumato.queries.plan.query import FoundBounds
from sfumato.queries.pricing.price import PricedQuery
from sfumato.queries.release.computed_columns import clamped_values, computed_interval
from sfumato.queries.release.data_frames import as_pandas, as_polars
from sfumato.queries.release.display import as_html, as_text, drawn_table, printable, promise
from sfumato.queries.release.estimates import as_arrow_array, interval, reports
from sfumato.queries.release.estimates import values as values_of
from sfumato.queries.release.explanation import explain
from sfumato.queries.release.record import ReleaseRecord
from sfumato.queries.release.record_explanation import explain_record
from sfumato.queries.release.truncation import Truncation

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["TableRelease"]


@final
@dataclass(frozen=True, slots=True)
class TableRelease:
    """A differentially private table, with its error, its loss and its receipt; it holds no raw data.

    Parameters
    ----------
    record : ReleaseRecord
        The noised integers and the public facts about them.
    receipt : Receipt or None
        The ledger's receipt of the charge; None where asking again read a committed release back.
    priced : PricedQuery or None
        The query with its noise, from which `explain` makes its sentences; None where a ledger's release was
        read back by its number, for queries are not stored.
    replayed : bool
        True if this very query had been answered before: the same bytes again, free of charge.
    account : LedgerView or None
        What was charged, asked for what is left when the release is shown in a notebook.

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
    priced: PricedQuery | None = field(repr=False)
    replayed: bool = False
    account: LedgerView | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_payload(cls, payload: bytes, receipt: Receipt) -> TableRelease:
        """Read what a ledger stored; see `Ledger.release`.

        Parameters
        ----------
        payload : bytes
            As it was committed.
        receipt : Receipt
            Of its charge.

        Returns
        -------
        TableRelease

        Raises
        ------
        LedgerUnavailable
            If only a later version of sfumato knows its format.
        """
        return cls(ReleaseRecord.from_bytes(payload), receipt, None, replayed=True)

    def __getstate__(self) -> list[object]:
        """Return the fields without the ledger, which belongs to this process."""
        return [None if each.name == "account" else getattr(self, each.name) for each in fields(self)]

    def __setstate__(self, state: list[object]) -> None:
        for each, value in zip(fields(self), state, strict=True):
            object.__setattr__(self, each.name, value)

    def __repr__(self) -> str:
        names = printable(", ".join(self.columns))
        return f"TableRelease({self.to_arrow().num_rows} of ({names}); {printable(self._promise)})"

    def __str__(self) -> str:
        report = self.truncation
        cut_off = () if report is None else (f"cut off: {line}" for line in report.lines())
        return "\n".join((as_text(self.to_arrow(), self._promise, self.record.keys), *cut_off))

    def _repr_html_(self) -> str:
        table, wide = self.to_arrow(), self.to_arrow(intervals=True)
        return as_html(table, self._promise, self.record.keys, facts=self._facts, intervals=wide)

    @property
    def _facts(self) -> dict[str, str]:
        """What a notebook says below the rows: intervals, cost, receipt, and what is left now."""
        facts = {"in brackets": "95 % intervals for the bounded answer"} if self.record.columns else {}
        report = self.truncation
        if report is not None:
            facts["cut off"] = str(report)
        facts["cost"] = f"({self.epsilon:g}, {self.charged_delta:g})-DP" + (
            ", paid before" if self.replayed else ""
        )
        if self.receipt is not None:
            facts["receipt"] = str(self.receipt)
        if self.account is not None:
            with suppress(LedgerError):  # the ledger was closed since, or is not to be reached
                facts["left"] = str(self.account.remaining(self.delta))
        return facts

    @property
    def _promise(self) -> str:
        return promise(f"({self.epsilon:g}, {self.delta:g})", self.privacy_unit, simulated=self.simulated)

    @property
    def epsilon(self) -> float:
        """Epsilon of this answer alone."""
        return self.record.epsilon

    @property
    def delta(self) -> float:
        """Delta of this answer alone."""
        return self.record.delta

    @property
    def charged_delta(self) -> float:
        """What the ledger is charged of `delta`: nothing where the noise keeps epsilon without it."""
        return delta_needed(self.loss, self.epsilon, self.delta)

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
    def truncation(self) -> Truncation | None:
        """What the limits of the query cut off, with 95 % intervals, where ``truncation_epsilon`` asks it."""
        return Truncation.of(self.record.truncation, 0.95) if self.record.truncation else None

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
        if self.priced is None:
            return "\n".join((*explain_record(self.record), *self._widths()))
        record, loss = self.record, self.priced.loss
        made = explain(self.priced, privacy_unit=record.privacy_unit, found=record.found)
        # the same query is priced the same, but for round-off, unless calibration was improved since
        costs = (each.quick_epsilon(record.delta) for each in (record.loss, loss))
        if math.isclose(*costs, rel_tol=1e-6) and record.threshold == self.priced.threshold:
            return "\n".join((made, *self._widths()))
        other = f"Made by another version, whose noise was another; it charged: {record.loss!r}"
        return "\n".join((made, other, *self._widths()))

    def _widths(self) -> Iterator[str]:
        """Say how wide the intervals are in the middle of the groups, and what was cut off."""
        for column in self.record.columns:
            lower, upper = interval(self.record, column, 0.95)
            halves = (np.asarray(upper, np.float64) - np.asarray(lower, np.float64)) / 2
            known = halves[np.isfinite(halves)]
            if known.size:
                groups = f", in the median of {len(lower)} groups" if self.record.keys else ""
                side = f"{np.median(known):.4g} to a side"
                yield f"In this answer: the 95 % interval of {column.name} is {side}{groups}."
        report = self.truncation
        if report is not None:
            yield from (f"In this answer: {line}." for line in report.lines())

    def to_arrow(self, *, intervals: bool = False, level: float = 0.95, clamp: bool = False) -> pa.Table:
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
        clamp : bool
            Clamp counts, sums of which no unit's part is negative (or none positive), and the ends of their
            intervals to what is possible: a count of -81 is shown as 0. Computed columns are computed anew
            from clamped ones. Rows and their order stay those of the noisy numbers. It costs no privacy and
            no coverage, but clamped numbers are biased: of many small groups, mean and total are too large.

        Returns
        -------
        pyarrow.Table
        """
        level = _check.unit_interval("level", level, "write 0.95, say")
        _checked("intervals", intervals, "state another coverage by level=")
        _checked("clamp", clamp, "the range follows from the query")
        noised = {column.name: column for column in self.record.columns}
        computed = {column.name: column for column in self.record.computed}
        made: dict[str, Any] = {}
        for name in self.record.output:
            if name in noised and noised[name].report:
                made[name] = pa.array(reports(self.record, noised[name], level, clamp=clamp))
                continue
            made[name] = self._column(name, clamp=clamp)
            ends: Sequence[Any] | None = None
            if intervals and name in noised:
                ends = [*map(_as_array, interval(self.record, noised[name], level, clamp=clamp))]
            elif intervals and name in computed:
                ends = computed_interval(self.record, computed[name], level, clamp=clamp)
            if ends is not None:
                made[f"{name}_lower"], made[f"{name}_upper"] = ends
        return pa.table(list(made.values()), names=list(made)).take(self._shown())

    def to_pandas(self, *, intervals: bool = False, level: float = 0.95, clamp: bool = False) -> pd.DataFrame:
        """Return the answer as a pandas DataFrame; needs the extra ``sfumato[pandas]``.

        Parameters
        ----------
        intervals, level, clamp
            As for `to_arrow`.

        Returns
        -------
        pandas.DataFrame
        """
        return as_pandas(self.to_arrow(intervals=intervals, level=level, clamp=clamp))

    def to_polars(self, *, intervals: bool = False, level: float = 0.95, clamp: bool = False) -> pl.DataFrame:
        """Return the answer as a Polars DataFrame; needs the extra ``sfumato[polars]``.

        Parameters
        ----------
        intervals, level, clamp
            As for `to_arrow`.

        Returns
        -------
        polars.DataFrame
        """
        return as_polars(self.to_arrow(intervals=intervals, level=level, clamp=clamp))

    def plot(self, ax: Any = None, *, column: str | None = None, level: float = 0.95, most: int = 30) -> Any:
        """Draw one column with its intervals, a bar for each group; return the axes, and show nothing.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            New ones if left out.
        column : str, optional
            Which; the first one of numbers if left out.
        level : float
            Coverage of the intervals, as for `to_arrow`.
        most : int
            How many rows are drawn, the first ones.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        MissingExtra
            If matplotlib is absent and no axes are given.
        """
        table = self.to_arrow(intervals=True, level=level)
        return drawn_table(table, column, keys=self.record.keys, most=most, ax=ax)

    def _column(self, name: str, *, clamp: bool = False) -> pa.ChunkedArray | pa.Array:
        """Return a column by name, shown or not, with a value for every group."""
        record = self.record
        if name in record.keys:
            return record.table[f"k{record.keys.index(name)}"]
        for index, computed in enumerate(record.computed):
            if computed.name == name:
                return clamped_values(record, computed) if clamp else record.table[f"p{index}"]
        column = next(column for column in record.columns if column.name == name)
        return _as_array(values_of(record, column, clamp=clamp))

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


def _as_array(values: np.ndarray[Any, Any]) -> pa.Array:
    """Return one value for each row; where it is a row of numbers, a list."""
    if values.ndim == 1:
        return as_arrow_array(values)
    ends = np.arange(len(values) + 1, dtype=np.int32) * np.int32(values.shape[1])
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(values.ravel()))


def _checked(name: str, given: object, remedy: str) -> None:
    if not isinstance(given, bool):
        _check.refuse(name, "be True or False", given, remedy)
