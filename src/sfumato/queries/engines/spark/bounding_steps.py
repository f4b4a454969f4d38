"""Bounding on Spark: one statement for the whole job.

Rows are brought together by unit once; then the rows of a group that stay, groups, their ranks and the choice
among them need no other exchange between workers. Where a unit's rows are bounded over all groups together,
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
        rows = f"SELECT /*+ REPARTITION(u) */ * FROM ({self.rows(None)}) AS r WHERE u IS NOT NULL"
        if not self._chooses:
            return rows
        return f"SELECT {', '.join(('u', *self.keys, *self.slots.names))} {self._chosen_of(rows)}"

    def _measure_total(self, index: int) -> str:
        """Return the exact sum of a measure: in 64 bits where 2**36 units cannot leave these.

        Wide sums are put together from several; with many of them Java compiles no loop of that length any
        more, and all takes several times as long.
        """
        if self.slots.measures[index].sensitivity < _SMALL:
            return f"try_sum(m{index})"
        return self.dialect.total(f"m{index}", narrow=False)

    def _rows_of_parts(self) -> str:
        if not self._chooses:
            return self.rows("parts")
        on = " AND ".join(("r.u = o.u", *(self.dialect.same(f"r.{k}", f"o.{k}") for k in self.keys)))
        return f"SELECT r.* FROM ({self._unit_rows()}) AS r {self.dialect.semi_join} parts AS o ON {on}"

    def answer(self, prepared: CompiledJob) -> str:
        """Return the SELECT of the answer, with ``g`` where groups are public, in no order."""
        totals = self.totals(unit=prepared.unit, any_crowded=prepared.unit and self.crowds)
        if not prepared.public:
            return totals
        measures = (f"coalesce(t.m{i}, 0) AS m{i}" for i in range(len(self.slots.measures)))
        items = ", ".join(("p.g", *(f"p.{key}" for key in prepared.keys), *measures))
        return f"SELECT {items} FROM {GROUPS} AS p LEFT JOIN ({totals}) AS t ON p.g = t.g"
