"""Coverage and width of a column's intervals over the noise of one group whose exact integers are fixed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.frames.sources import open_source
from sfumato.numerics.randomness.source import random_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.query import Scan
from sfumato.queries.pricing.price import PricedQuery, price
from sfumato.queries.release.computed_columns import with_computed
from sfumato.queries.release.noise import add_noise
from sfumato.queries.release.record import ReleaseRecord
from sfumato.queries.release.table import TableRelease
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog

__all__ = ["Coverage", "NoisedGroup", "priced_and_exact"]

Floats = NDArray[np.float64]

_OUTSIDE = 1e-5
_BLOCK = 1000
_MOST = 20  # times the draws, where a group is seldom shown


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often intervals hold the bounded answer, and the median of their widths.

    ``count`` is the number of draws that were shown, none where all noise was enumerated. ``error`` is the
    root mean squared error, ``central`` the width of the central interval of the estimate's distribution.
    """

    held: float
    count: int
    width: float
    error: float
    central: float

    @property
    def enough(self) -> bool:
        """Whether the coverage is at least .95, less four standard errors where the noise was drawn."""
        allowed = 4 * math.sqrt(0.95 * 0.05 / self.count) if self.count else 1e-4
        return self.held >= 0.95 - allowed


def priced_and_exact(
    table: pa.Table, select: str, options: str, *, grouped: bool
) -> tuple[PricedQuery, pa.Table]:
    """Return a query of one group with its price, and its exact integers.

    Parameters
    ----------
    table : pyarrow.Table
        With the units in ``id``, and one value in ``g``.
    select, options : str
    grouped : bool
        Whether the group is shown by a threshold.
    """
    group = "GROUP BY g" if grouped else ""
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) {select} FROM data {group}"
    with DuckDBEngine(open_source(table)) as engine:
        priced = price(read(text, Catalog({"data": Scan("data", engine.schemas["data"], "id")})))
        return priced, engine.aggregate(priced.job, bytes(32))


@dataclass(frozen=True, slots=True)
class NoisedGroup:
    """A group under many noises, each with its probability, and its answer without any."""

    noisy: ReleaseRecord
    masses: Floats
    bare: ReleaseRecord
    count: int

    @classmethod
    def drawn(cls, priced: PricedQuery, exact: pa.Table, draws: int) -> NoisedGroup:
        """Return the group under noise as a query draws it; what is not shown is drawn anew."""
        some = _drawn(priced, exact, max(200, draws // 20), 6)
        times = max(1, min(_MOST, math.ceil(max(200, draws // 20) / max(1, some.table.num_rows))))
        record = _drawn(priced, exact, draws * times, 7)
        shown = record.table.num_rows
        if shown > draws:
            record, shown = replace(record, table=record.table.slice(0, draws)), draws
        return cls(record, np.full(shown, 1 / max(1, shown)), _bare(priced, exact, record), shown)

    @classmethod
    def enumerated(cls, priced: PricedQuery, exact: pa.Table) -> NoisedGroup:
        """Return the group, shown in any case, under all of its noise but 1e-5 on either side."""
        bare = _bare(priced, exact, _drawn(priced, exact, 0, 1))
        axes, masses = [], np.ones(1)
        for measure in bare.measures:
            last = measure.noise.quantile_above(_OUTSIDE)
            axes.append(np.arange(-last, last + 1))
            chances = np.array([measure.noise.pmf(int(value)).lower for value in axes[-1]])
            masses = np.multiply.outer(masses, chances).ravel()
        grids = (grid.ravel() for grid in np.meshgrid(*axes, indexing="ij"))
        noisy = {
            f"m{index}": pa.array(exact[f"m{index}"][0].as_py() + grid) for index, grid in enumerate(grids)
        }
        record = replace(bare, table=pa.table(noisy), computed=())
        return cls(with_computed(record, priced.query.computed), masses / masses.sum(), bare, 0)

    def coverage(self, name: str = "v", between: tuple[float, float] | None = None) -> Coverage:
        """Return what the 95 % intervals of a column hold, and how wide they are.

        Parameters
        ----------
        name : str
        between : tuple of two floats or None
            For a quantile the values that it lies between, both of which an interval is to hold.
        """
        answer = TableRelease(self.noisy, None, None).to_arrow(intervals=True)
        value, low, high = (_floats(answer[f"{name}{end}"]) for end in ("", "_lower", "_upper"))
        if between is None:
            between = (float(TableRelease(self.bare, None, None).to_arrow()[name][0].as_py()),) * 2
        true, slack = sum(between) / 2, 1e-9 * max(1e-9, *map(abs, between))
        held = (low - slack <= between[0]) & (between[1] <= high + slack)
        known = ~np.isnan(value)
        first, last = _quantiles(value[known], self.masses[known], (0.025, 0.975))
        (width,) = _quantiles(high - low, self.masses, (0.5,))
        error = math.sqrt(float(np.average((value[known] - true) ** 2, weights=self.masses[known])))
        return Coverage(float(self.masses[held].sum()), self.count, width, error, last - first)


def _drawn(priced: PricedQuery, exact: pa.Table, draws: int, seed: int) -> ReleaseRecord:
    # Counts by bin are a list of thousands for each draw, so that these are drawn in blocks.
    block = _BLOCK if any(pa.types.is_nested(kind) for kind in exact.schema.types) else max(1, draws)
    source, tables = random_source(seed), []
    for start in range(0, max(1, draws), block):
        many = exact.take(pa.array(np.zeros(min(block, draws - start), np.int64)))
        record = add_noise(priced, many, source, privacy_unit="id")
        tables.append(record.table)
    return replace(record, table=pa.concat_tables(tables))


def _bare(priced: PricedQuery, exact: pa.Table, record: ReleaseRecord) -> ReleaseRecord:
    return with_computed(replace(record, table=exact, computed=()), priced.query.computed)


def _floats(column: pa.ChunkedArray) -> Floats:
    return np.asarray(column.cast(pa.float64()).to_numpy(), np.float64)


def _quantiles(values: Floats, masses: Floats, shares: Sequence[float]) -> list[float]:
    """Return the smallest values that at least these shares of the probability are at or below."""
    order = np.argsort(values)
    summed = np.cumsum(masses[order])
    places = np.searchsorted(summed, np.array(shares) * summed[-1] * (1 - 1e-12))
    return [float(value) for value in values[order][places]]
