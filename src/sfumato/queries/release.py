"""The released table: what an analyst gets back from a private SELECT."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato import _check
from sfumato.errors import MissingExtra
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.receipt import Receipt
from sfumato.queries.display import as_html, as_text, printable
from sfumato.queries.intervals import central_interval, mean_interval, thresholded_interval
from sfumato.queries.plan import AggregateKind
from sfumato.queries.record import ReleasedColumn, ReleaseRecord

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["TableRelease", "read_back"]


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
    replayed : bool
        True if this very query had been answered before: the same bytes again, free of charge.

    Notes
    -----
    Guarantee: ``(epsilon, delta)``-DP of this answer alone, under adding or removing one privacy unit; what
    the ledger was charged is ``loss``.
    """

    record: ReleaseRecord
    receipt: Receipt | None
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
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the answer."""
        return self.record.output

    def explain(self) -> str:
        """Say how the answer was made: bounds, noise, threshold, cost."""
        return self.record.explanation

    def to_arrow(self, *, intervals: bool = False, level: float = 0.95) -> pa.Table:
        """Return the answer as an Arrow table.

        Parameters
        ----------
        intervals : bool
            Put ``<name>_lower`` and ``<name>_upper`` after every noised column.
        level : float
            Coverage of the intervals, strictly between 0 and 1. Each interval is for the bounded answer; for
            a group that a threshold let through, its count's coverage holds given that it was shown.
        """
        level = _check.unit_interval("level", level, "write 0.95, say")
        noised = {column.name: column for column in self.record.columns}
        made: dict[str, Any] = {}
        for name in self.record.output:
            if name not in noised:
                made[name] = self.record.table[f"k{self.record.keys.index(name)}"]
                continue
            made[name] = pa.array(self._values(noised[name]))
            if intervals:
                lower, upper = self._interval(noised[name], level)
                made[f"{name}_lower"], made[f"{name}_upper"] = pa.array(lower), pa.array(upper)
        return self._ordered(pa.table(list(made.values()), names=list(made)))

    def to_pandas(self, *, intervals: bool = False, level: float = 0.95) -> pd.DataFrame:
        """Return the answer as a pandas DataFrame; needs the extra ``sfumato[pandas]``."""
        try:
            import pandas as pd  # noqa: F401, PLC0415 - an optional library
        except ImportError as missing:
            raise MissingExtra("to_pandas needs pandas; pip install 'sfumato[pandas]'") from missing
        frame: pd.DataFrame = self.to_arrow(intervals=intervals, level=level).to_pandas()
        return frame

    def to_polars(self, *, intervals: bool = False, level: float = 0.95) -> pl.DataFrame:
        """Return the answer as a Polars DataFrame; needs the extra ``sfumato[polars]``."""
        try:
            import polars as pl  # noqa: PLC0415 - an optional library
        except ImportError as missing:
            raise MissingExtra("to_polars needs Polars; pip install 'sfumato[polars]'") from missing
        return pl.DataFrame(self.to_arrow(intervals=intervals, level=level))

    def _noisy(self, index: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        noisy: np.ndarray[tuple[int], np.dtype[np.int64]] = self.record.table[f"m{index}"].to_numpy()
        return noisy

    def _values(self, column: ReleasedColumn) -> np.ndarray[Any, Any]:
        total, noisy = self.record.measures[column.total], self._noisy(column.total)
        if column.count is None:
            return _scaled(noisy, total.exponent)
        counts = np.maximum(1, self._noisy(column.count))
        return _scaled(np.clip(total.center + noisy / counts, total.lower, total.upper), total.exponent)

    def _interval(self, column: ReleasedColumn, level: float) -> tuple[np.ndarray[Any, Any], ...]:
        record, total = self.record, self.record.measures[column.total]
        noisy = self._noisy(column.total)
        ends: tuple[np.ndarray[Any, Any], ...]
        if column.count is not None:
            count = record.measures[column.count]
            ends = mean_interval(total, count, noisy, self._noisy(column.count), level)
        elif column.total == 0 and record.threshold is not None:
            ends = thresholded_interval(total.noise, noisy, record.threshold, level)
        else:
            ends = central_interval(total, noisy, level)
            if column.kind is not AggregateKind.SUM:
                ends = tuple(np.maximum(0, end) for end in ends)  # a count is not negative
        return tuple(_scaled(end, total.exponent) for end in ends)

    def _ordered(self, table: pa.Table) -> pa.Table:
        # Stable sorts from the last term to the first; the engine's order by key breaks ties.
        for item in reversed(self.record.order_by):
            column = table[item.name].combine_chunks()
            missing = column.is_null().to_numpy(zero_copy_only=False)
            absent, present = np.flatnonzero(missing), np.flatnonzero(~missing)
            order = "descending" if item.descending else "ascending"
            ranks = pc.sort_indices(column.take(pa.array(present)), sort_keys=[("", order)])
            present = present[ranks.to_numpy()]
            parts = (absent, present) if item.nulls_first else (present, absent)
            table = table.take(pa.array(np.concatenate(parts)))
        return table if self.record.limit is None else table.slice(0, self.record.limit)


def read_back(payload: bytes) -> TableRelease:
    """Make the release of a committed record."""
    return TableRelease(ReleaseRecord.from_bytes(payload), None, replayed=True)


def _scaled(steps: np.ndarray[Any, Any], exponent: int) -> np.ndarray[Any, Any]:
    if exponent == 0:
        return steps
    return np.asarray(steps, dtype=np.float64) * float(Fraction(2) ** exponent)
