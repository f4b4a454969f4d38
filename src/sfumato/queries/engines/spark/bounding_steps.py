"""Bounding on Spark: one statement for most jobs, two where rows are trimmed.

Rows are brought together by unit once; then groups, their ranks and the choice among them need no other
exchange between workers. Where a unit may have only so many rows in a group, the first statement gives the
sums of the parts that are within, and the list of those that are not (``summed``, retained); the second reads
the rows of these parts again.

Notes
-----
Guarantee: that of :mod:`~sfumato.queries.engines.compilation.bounding`: the groups and rows that a unit keeps
are a function of its own rows and of the secret. So what is computed again, because a worker was lost, comes
out the same. No limit rests on ranks being different: positions are numbers of rows, and ties are
distinguished by the keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.queries.engines.compilation.bounding import Bounding, Step
from sfumato.queries.engines.compilation.job import GROUPS, CompiledJob
from sfumato.queries.engines.dialects.base import REACH

__all__ = ["SparkBounding", "with_steps"]

_SMALL = 2**27


def with_steps(steps: Sequence[Step], select: str) -> str:
    """Return a SELECT behind the steps that it reads."""
    named = ", ".join(f"{step.name} AS ({step.select})" for step in steps)
    return f"WITH {named} {select}" if steps else select


@dataclass(frozen=True, slots=True)
class SparkBounding(Bounding):
    """The steps of one job on Spark; ``parts`` holds only groups that stay.

    Parameters
    ----------
    summed : str
        The name under which the first statement's result is retained.
    """

    summed: str = "summed"

    @classmethod
    def of(cls, prepared: CompiledJob, secret: bytes, summed: str) -> SparkBounding:
        """Return the steps of a prepared job."""
        limits = prepared.max_groups, prepared.max_rows
        return cls(
            prepared.rows, prepared.grouping, prepared.slots, *limits, secret, prepared.all_rows, summed
        )

    @property
    def twice(self) -> bool:
        """Whether there are two statements."""
        return self.trims_rows and self.all_rows is None

    def parts(self) -> Step:
        """Return the step ``parts``."""
        rows = f"SELECT /*+ REPARTITION(u) */ * FROM ({self.rows(None)}) AS r WHERE u IS NOT NULL"
        key = ", ".join(("u", *self.keys))
        parts = f"SELECT {', '.join((key, *self.slots.grouped()))} FROM ({rows}) AS r GROUP BY {key}"
        if self.max_groups is None:
            return Step("parts", parts)
        names = ", ".join((key, *self.slots.part_names))
        ranked = f"SELECT {names}, {self._group_rank()} AS h FROM ({parts}) AS r"
        order = ", ".join(("h", *self.keys))
        place = f"row_number() OVER (PARTITION BY u ORDER BY {order}) AS place"
        placed = f"SELECT {names}, {place} FROM ({ranked}) AS r"
        return Step("parts", f"SELECT {names} FROM ({placed}) AS r WHERE place <= {self.max_groups}")

    def steps(self) -> list[Step]:
        """Return the steps in order, those of the second statement where there are two."""
        first = [] if self.twice and not self.slots.rowwise else [self.parts()]
        if not self.trims_rows:
            return first
        return [*first, self.crowded(), *([self.chosen()] if self.slots.rowwise else []), self.trimmed()]

    def _staying_parts(self, condition: str) -> str:
        return f"FROM parts WHERE {condition}"

    def crowded(self) -> Step:
        """Return the step ``crowded``."""
        if not self.twice:
            return Bounding.crowded(self)
        columns = ", ".join(("crowd AS u", *self.keys))
        return Step("crowded", f"SELECT {columns} FROM {self.summed} WHERE crowd IS NOT NULL")

    def sums(self, groups: Sequence[Step]) -> str:
        """Return the first statement: sums of parts that hold no more rows than they may.

        A part that does is a row of its own, known by its unit in ``crowd``; what it sums means nothing. The
        steps before it are written into it, for Spark does not find again what it keeps of a WITH.
        """
        fits = f"n <= {self.max_rows}"
        values = (f"CASE WHEN {fits} THEN {name} END AS {name}" for name in self.slots.part_names)
        crowd = f"CASE WHEN {fits} THEN NULL ELSE u END AS crowd"
        source = self.parts().select
        for step in groups:
            source = source.replace(f"JOIN {step.name} AS ", f"JOIN ({step.select}) AS ")
        parts = f"SELECT {', '.join((*self.keys, crowd, *values))} FROM ({source}) AS parts"
        return self._summed(parts, [*self.keys, "crowd"])

    def _summed(self, parts: str, by: Sequence[str]) -> str:
        """Return the SELECT of the exact sums of contributions by some columns."""
        slots, count = self.slots, range(len(self.slots.measures))
        means = ", ".join((*by, *slots.part_names, *slots.means()))
        each = ", ".join((*by, *(f"{slots.contribution(i)} AS m{i}" for i in count)))
        sums = (f"{self._total(i)} AS m{i}" for i in count)
        contributions = f"SELECT {each} FROM (SELECT {means} FROM ({parts}) AS r) AS r"
        grouping = f" GROUP BY {', '.join(by)}" if by else ""
        return f"SELECT {', '.join((*by, *sums))} FROM ({contributions}) AS r{grouping}"

    def _total(self, index: int) -> str:
        """Return the exact sum of a measure: in 64 bits where 2**36 units cannot leave these.

        Wide sums are put together from several; with many of them Java compiles no loop of that length any
        more, and all takes several times as long.
        """
        if self.slots.measures[index].sensitivity < _SMALL:
            return f"try_sum(m{index})"
        return self.dialect.total(f"m{index}", narrow=False)

    def totals(self, *, unit: bool, any_crowded: bool, parts_table: str | None = None) -> str:
        """Return the SELECT of the sums per group."""
        if not unit or not self.twice:
            return Bounding.totals(self, unit=unit, any_crowded=any_crowded, parts_table=parts_table)
        count = range(len(self.slots.measures))
        names = ", ".join((*self.keys, *(f"m{i}" for i in count)))
        source = f"SELECT {names} FROM {self.summed} WHERE crowd IS NULL"
        if any_crowded:
            parts = f"SELECT {', '.join((*self.keys, *self.slots.part_names))} FROM trimmed"
            source += f" UNION ALL SELECT {names} FROM ({self._summed(parts, self.keys)}) AS r"
        ends = (self.dialect.clamped(f"m{i}", (-REACH, REACH)) for i in count)
        items = ", ".join((*self.keys, *(f"{end} AS m{i}" for i, end in enumerate(ends))))
        sums = ", ".join((*self.keys, *(f"coalesce(try_sum(m{i}), 0) AS m{i}" for i in count)))
        grouping = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        totals = f"SELECT {items} FROM (SELECT {sums} FROM ({source}) AS r{grouping}) AS r"
        return self.with_distinct(totals, unit=unit, any_crowded=any_crowded)

    def _staying(self, columns: Sequence[str], *, unit: bool, any_crowded: bool) -> str:
        """Return a SELECT of columns of the rows that stay, of which the sums are."""
        names = ", ".join(columns)
        rows = f"({self.rows('parts' if unit else None)}) AS r"
        if not any_crowded:
            return f"SELECT {names} FROM {rows}"
        mine = ", ".join(f"r.{name}" for name in columns)
        on = " AND ".join(("r.u = o.u", *(self.dialect.same(f"r.{k}", f"o.{k}") for k in self.keys)))
        source = f"SELECT {mine} FROM {rows} LEFT ANTI JOIN crowded AS o ON {on}"
        return f"{source} UNION ALL SELECT {names} FROM chosen"

    def answer(self, prepared: CompiledJob, *, any_crowded: bool) -> str:
        """Return the SELECT of the answer, with ``g`` where groups are public, in no order."""
        totals = self.totals(unit=prepared.unit, any_crowded=any_crowded)
        if not prepared.public:
            return totals
        measures = (f"coalesce(t.m{i}, 0) AS m{i}" for i in range(len(self.slots.measures)))
        items = ", ".join(("p.g", *(f"p.{key}" for key in prepared.keys), *measures))
        return f"SELECT {items} FROM {GROUPS} AS p LEFT JOIN ({totals}) AS t ON p.g = t.g"
