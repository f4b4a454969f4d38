"""Bounding by windows: the groups that stay are numbered where parts are made, in one SELECT.

It suits engines that sort or exchange rows by unit anyway: no table of cuts, and where no rows are chosen one
by one, no table at all, so that the whole job is one statement that the engine may run in parallel.

Notes
-----
Guarantee: that of :mod:`~sfumato.queries.engines.compilation.bounding`: the groups that a unit keeps are a
function of its own keys and of the secret. No limit rests on ranks being different: positions are numbers of
rows, and ties are distinguished by the keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from sfumato.queries.engines.compilation.bounding import Bounding, Step
from sfumato.queries.engines.compilation.job import CompiledJob

__all__ = ["WindowedBounding"]


@dataclass(frozen=True, slots=True)
class WindowedBounding(Bounding):
    """The steps of one job; ``parts`` holds only groups that stay."""

    @classmethod
    def of(cls, prepared: CompiledJob, secret: bytes) -> Self:
        """Return the steps of a prepared job."""
        limits = prepared.max_groups, prepared.max_rows
        return cls(prepared.rows, prepared.grouping, prepared.slots, *limits, secret, prepared.all_rows)

    def parts(self) -> Step:
        """Return the step ``parts``."""
        key = ", ".join(("u", *self.keys))
        source = f"FROM ({self._unit_rows()}) AS r GROUP BY {key}"
        if self.max_groups is None:
            return Step("parts", f"SELECT {', '.join((key, *self.slots.grouped()))} {source}")
        names = ", ".join((key, *self.slots.part_names))
        parts = f"SELECT {', '.join((key, *self.slots.grouped()))}, {self._group_rank()} AS h {source}"
        order = ", ".join(("h", *self.keys))
        place = f"row_number() OVER (PARTITION BY {self._within(['u'])} ORDER BY {order}) AS place"
        placed = f"SELECT {names}, {place} FROM ({parts}) AS r"
        return Step("parts", f"SELECT {names} FROM ({placed}) AS r WHERE place <= {self.max_groups}")

    def _unit_rows(self) -> str:
        """Return the SELECT of the rows of units."""
        return f"SELECT * FROM ({self.rows(None)}) AS r WHERE u IS NOT NULL"

    def steps(self) -> list[Step]:
        """Return the steps in order; none where the answer reads the parts once."""
        if not self._reads_again:
            return []
        if not self._makes_again:
            return [self.parts()]
        chosen = [self.chosen()] if self.slots.rowwise else []
        return [self.parts(), self.crowded(), *chosen, self.trimmed()]

    @property
    def _makes_again(self) -> bool:
        """Whether parts with too many rows are made again from fewer."""
        return self.trims_rows

    @property
    def _reads_again(self) -> bool:
        """Whether more than the sums reads the parts."""
        return self._makes_again or self.slots.rowwise

    def _staying_parts(self, condition: str) -> str:
        parts = "parts" if self._reads_again else f"({self.parts().select}) AS parts"
        return f"FROM {parts} WHERE {condition}"

    def _rows_of_parts(self) -> str:
        """Return the SELECT of the rows of the parts that stay."""
        return self.rows("parts")

    def _staying(self, columns: Sequence[str], *, unit: bool, any_crowded: bool) -> str:
        """Return a SELECT of columns of the rows that stay, of which the sums are."""
        names = ", ".join(columns)
        rows = f"({self._rows_of_parts() if unit else self.rows(None)}) AS r"
        if not any_crowded:
            return f"SELECT {names} FROM {rows}"
        mine = ", ".join(f"r.{name}" for name in columns)
        on = " AND ".join(("r.u = o.u", *(self.dialect.same(f"r.{k}", f"o.{k}") for k in self.keys)))
        source = f"SELECT {mine} FROM {rows} LEFT JOIN crowded AS o ON {on} WHERE o.u IS NULL"
        return f"{source} UNION ALL SELECT {names} FROM chosen"
