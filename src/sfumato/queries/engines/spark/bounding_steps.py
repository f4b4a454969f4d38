"""Bounding on Spark: one statement for the whole job.

Rows are brought together by unit once; then groups, their ranks and the choice among them need no other
exchange between workers. Where rows are limited too, they are sorted by unit, so that the groups of a unit
stand in the order of their ranks and the rows of a group side by side: which groups and rows stay is numbered
along that order, and only what stays is added up. Where a unit's rows are bounded over all groups together,
its parts are made, and those of units with too many rows are made again from fewer.

Notes
-----
Guarantee: that of :mod:`~sfumato.queries.engines.compilation.windowed_bounding`: the groups and rows that a
unit keeps are a function of its own rows and of the secret. So what is computed again, because a worker was
lost, comes out the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from sfumato.queries.engines.compilation.bounding import Step
from sfumato.queries.engines.compilation.job import GROUPS, CompiledJob
from sfumato.queries.engines.compilation.windowed_bounding import WindowedBounding

__all__ = ["SparkBounding", "with_steps"]

_SMALL = 2**27


def with_steps(steps: Sequence[Step], select: str) -> str:
    """Return a SELECT behind the steps that it reads."""
    named = ", ".join(f"{step.name} AS ({step.select})" for step in steps)
    return f"WITH {named} {select}" if steps else select


@final
@dataclass(frozen=True, slots=True)
class SparkBounding(WindowedBounding):
    """The steps of one job on Spark; ``parts`` holds only groups and rows that stay."""

    @property
    def crowds(self) -> bool:
        """Whether parts with too many rows are made again from fewer."""
        return self.all_rows is not None

    @property
    def _makes_again(self) -> bool:
        return self.crowds

    @property
    def _chooses(self) -> bool:
        """Whether rows of a group are chosen before parts are made."""
        return self.trims_rows and not self.crowds

    def _unit_rows(self) -> str:
        every = ", ".join(self._columns)
        return f"SELECT /*+ REPARTITION(u) */ {every} FROM ({self.rows(None)}) AS r WHERE u IS NOT NULL"

    def parts(self) -> Step:
        """Return the step ``parts``: of all rows, by which groups are chosen; or of the rows that stay.

        The rank of a group is then one of what groups are known by: rows that are sorted by unit and rank
        need no table of hashes to be added up.
        """
        if not self._chooses:
            return WindowedBounding.parts(self)
        items, by = ", ".join(("u", *self.keys, *self.slots.grouped())), ", ".join(("u", *self._order))
        return Step("parts", f"SELECT {items} FROM ({self._chosen_rows()}) AS r GROUP BY {by}")

    @property
    def _order(self) -> tuple[str, ...]:
        """The order of the groups of a unit: the first are those that stay."""
        return self.keys if self.max_groups is None else ("h", *self.keys)

    @property
    def _columns(self) -> tuple[str, ...]:
        return "u", *self.keys, *self.slots.names

    def _along(self, *order: str) -> str:
        return f"OVER (PARTITION BY {self._within(['u'])} ORDER BY {', '.join(order)})"

    def _of_staying_groups(self) -> str:
        """Return the SELECT of the rows of groups that stay; ``f`` numbers the first row of each."""
        every, along = ", ".join((*self._columns, "h")), self._along(*self._order)
        ranked = (
            f"SELECT {', '.join(self._columns)}, {self._group_rank()} AS h FROM ({self._unit_rows()}) AS r"
        )
        numbers = f"dense_rank() {along} AS place, rank() {along} AS f"
        placed = f"SELECT {every}, {numbers} FROM ({ranked}) AS r"
        return f"SELECT {every}, f FROM ({placed}) AS r WHERE place <= {self.max_groups}"

    def _chosen_rows(self) -> str:
        """Return the SELECT of the rows that stay of each group.

        What is chosen is what `_chosen` chooses: by the same ranks, of rows that are distinguished by the
        same numbers. All windows are of a unit, for those of its groups would be many times as many.
        """
        values, grouped = self.slots.names, self.max_groups is not None
        known = ", ".join((*self._columns, *(("h", "f") if grouped else ())))
        rows = self._of_staying_groups() if grouped else self._unit_rows()
        along = self._along(*self._order, *values)
        numbered = f"SELECT {known}, row_number() {along} - rank() {along} + 1 AS i FROM ({rows}) AS r"
        ranked = f"SELECT {known}, i, {self._row_rank()} AS w FROM ({numbered}) AS r"
        along = self._along(*self._order, "w", *values, "i")
        place = f"row_number() {along}{' - f + 1' if grouped else ''} AS place"
        placed = f"SELECT {known}, {place} FROM ({ranked}) AS r"
        every = ", ".join((*self._columns, *(("h",) if grouped else ())))
        return f"SELECT {every} FROM ({placed}) AS r WHERE place <= {self.max_rows}"

    def _rows_of_parts(self) -> str:
        return self._chosen_rows() if self._chooses else self.rows("parts")

    def _measure_total(self, index: int) -> str:
        """Return the exact sum of a measure: in 64 bits where it takes 2**36 units to leave these.

        Wide sums are put together from several; with many of them Java compiles no loop of that length any
        more, and all takes several times as long.
        """
        if self.slots.measures[index].sensitivity < _SMALL:
            return f"sum(m{index})"
        return self.dialect.total(f"m{index}", narrow=False)

    def answer(self, prepared: CompiledJob) -> str:
        """Return the SELECT of the answer, with ``g`` where groups are public, in no order."""
        totals = self.totals(unit=prepared.unit, any_crowded=prepared.unit and self.crowds)
        if not prepared.public:
            return totals
        measures = (f"coalesce(t.m{i}, 0) AS m{i}" for i in range(len(self.slots.measures)))
        items = ", ".join(("p.g", *(f"p.{key}" for key in prepared.keys), *measures))
        return f"SELECT {items} FROM {GROUPS} AS p LEFT JOIN ({totals}) AS t ON p.g = t.g"
