"""The columns of a job's measures: of rows, of a unit's part of a group, and of the answer."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.queries.engines.compilation.measure_sql import (
    MEASURE_SQL,
    CountBinsSql,
    CountDistinctSql,
    MeasureSql,
)
from sfumato.queries.engines.compilation.value_columns import ValueColumn, ValueColumns
from sfumato.queries.engines.dialects.base import Dialect
from sfumato.queries.plan.query import Measure

__all__ = ["MeasureColumns"]


class MeasureColumns:
    """A job's measures over integer columns, each column once.

    Parameters
    ----------
    measures : sequence of Measure
    max_rows : int or None
        Most rows of one unit in one group, None for any number; it says where a sum fits in 64 bits.
    dialect : Dialect
        What the texts are written in.
    known : sequence of ValueColumn
        Columns that are there already and come first, used or not.

    Raises
    ------
    ParameterError
        If a bound is out of reach or reversed, or an expression is missing or of the wrong type.
    """

    def __init__(
        self,
        measures: Sequence[Measure],
        max_rows: int | None,
        dialect: Dialect,
        known: Sequence[ValueColumn] = (),
    ) -> None:
        for measure in measures:
            MEASURE_SQL[measure.kind].check(measure)
        self.dialect = dialect
        self.measures = tuple(measures)
        self._columns = ValueColumns(max_rows, dialect, known)
        placed: dict[int, MeasureSql] = {}
        for index in sorted(range(len(measures)), key=lambda i: not MEASURE_SQL[measures[i].kind].early):
            placed[index] = MEASURE_SQL[measures[index].kind].placed(measures[index], self._columns)
        self._made = [placed[index] for index in range(len(measures))]

    @property
    def items(self) -> list[ValueColumn]:
        """The columns of rows."""
        return self._columns.items

    @property
    def names(self) -> list[str]:
        """The names of these, ``v0, v1, ...``."""
        return [f"v{i}" for i in range(len(self.items))]

    @property
    def part_names(self) -> list[str]:
        """The columns of a unit's part of a group."""
        products = range(len(self._columns.products))
        sums = *(f"s{i}" for i in self._sums()), *(self._columns.product_name(i) for i in products)
        return ["n", *(f"c{i}" for i in self._counts()), *sums]

    def _counts(self) -> list[int]:
        return sorted({made.counted for made in self._made if made.counted is not None})

    def _sums(self) -> list[int]:
        return sorted({made.summed for made in self._made if made.summed is not None})

    def grouped(self) -> list[str]:
        """Return the aggregates that make a unit's part of a group from its rows."""
        columns = self._columns
        items = ["count(*) AS n", *(f"count(v{i}) AS c{i}" for i in self._counts())]
        items += [f"{columns.total(i)} AS s{i}" for i in self._sums()]
        total, products = self.dialect.total, range(len(columns.products))
        return items + [
            f"{total(columns.product(i), narrow=False)} AS {columns.product_name(i)}" for i in products
        ]

    def single(self) -> list[str]:
        """Return the same for a row that is a unit of its own."""
        columns, wide = self._columns, self.dialect.wide
        items = ["1 AS n", *(f"CASE WHEN v{i} IS NULL THEN 0 ELSE 1 END AS c{i}" for i in self._counts())]
        items += [f"{f'v{i}' if columns.fits(i, 1) else wide(f'v{i}')} AS s{i}" for i in self._sums()]
        products = range(len(columns.products))
        return items + [f"{columns.product(i)} AS {columns.product_name(i)}" for i in products]

    @property
    def binned(self) -> list[int]:
        """The measures that are counts of rows by bin."""
        return [index for index, made in enumerate(self._made) if isinstance(made, CountBinsSql)]

    @property
    def distinct(self) -> list[int]:
        """The measures that are numbers of distinct values."""
        return [index for index, made in enumerate(self._made) if isinstance(made, CountDistinctSql)]

    @property
    def rowwise(self) -> bool:
        """Whether any measure needs the rows that stay, one by one."""
        return bool(self.binned or self.distinct)

    def value(self, index: int) -> str:
        """Return the column of the values that such a measure tells apart."""
        made = self._made[index]
        assert isinstance(made, CountDistinctSql)  # noqa: S101 - an index of `distinct`
        return f"v{made.told_apart}"

    def leaf(self, index: int) -> str:
        """Return the bin of a row for such a measure, from 0; NULL where it has no value."""
        made = self._made[index]
        assert isinstance(made, CountBinsSql)  # noqa: S101 - an index of `binned`
        return made.bin

    def means(self) -> list[str]:
        """Return the means that measures need, ``q0, q1, ...`` by measure."""
        means = (made.mean(index) for index, made in enumerate(self._made))
        return [mean for mean in means if mean is not None]

    def contribution(self, index: int) -> str:
        """Return what a unit's part of a group adds to a measure: within its sensitivity, or NULL."""
        return self._made[index].contribution(index)
