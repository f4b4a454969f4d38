"""What bounding made for one choice of rows, groups and limits, stored for the next query over it.

It saves time, never privacy: a query that finds its rows here pays its full loss. What is stored is raw data
and stays where the engine's other tables are.

Notes
-----
The queries that share a layout share its choice of rows and groups, too. The guarantee of an engine holds for
every fixed secret, so the answers compose like answers under different secrets.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from sfumato.queries.engines.compilation.measure_columns import MeasureColumns
from sfumato.queries.engines.compilation.value_columns import ValueColumn
from sfumato.queries.engines.duckdb.kernel import KernelParts
from sfumato.queries.plan.measure import Measure

__all__ = ["CACHED_PARTS", "BoundingCache", "CachedBounding"]

CACHED_PARTS = "cached_parts"
"""The table of the parts that count."""

_ANSWERS = 16  # small tables, one row for each group


@dataclass(frozen=True, slots=True)
class CachedBounding:
    """What one run made.

    Parameters
    ----------
    secret : bytes
        What keyed the choice of rows and groups.
    slots : tuple of ValueColumn
        The columns of values that the tables hold.
    columns : frozenset of str
        The columns of a unit's part of a group.
    tables : tuple of str
        The tables, by the names that the steps gave them.
    crowded : bool
        Whether some parts were computed again from fewer rows.
    answers : mapping
        What was computed from the tables, by what was measured.
    parts : KernelParts or None
        What the bounding kernel made, instead of tables.
    reusable : bool
        Whether it is to be stored at all.
    """

    secret: bytes = field(repr=False)
    slots: tuple[ValueColumn, ...]
    columns: frozenset[str]
    tables: tuple[str, ...]
    crowded: bool
    answers: Mapping[tuple[Measure, ...], pa.Table] = field(default_factory=dict)
    parts: KernelParts | None = None
    reusable: bool = True

    def with_answer(self, measures: tuple[Measure, ...], answer: pa.Table) -> CachedBounding:
        """Return the layout with one more answer remembered, of the last few."""
        rest = {asked: answer for asked, answer in self.answers.items() if asked != measures}
        return replace(self, answers=dict([*rest.items(), (measures, answer)][-_ANSWERS:]))

    def serves(self, slots: MeasureColumns) -> bool:
        """Whether all that ``slots``, made with these known, needs is there, or their answer itself."""
        if slots.measures in self.answers:
            return True
        rows_by_bin = not slots.rowwise or (
            self.parts is None and (not self.crowded or "chosen" in self.tables)
        )
        return tuple(slots.items) == self.slots and self.columns.issuperset(slots.part_names) and rows_by_bin


class BoundingCache:
    """The last few layouts, each put away under names of its own.

    Parameters
    ----------
    run : callable
        Executes a statement in the engine's database.
    most : int
        How many are retained; 0 keeps none.
    """

    def __init__(self, run: Callable[[str], object], most: int) -> None:
        self._run = run
        self.most = most
        self._stored_boundings: OrderedDict[str, tuple[int, CachedBounding]] = OrderedDict()
        self._next = 0

    def known(self, identity: str) -> Sequence[ValueColumn] | None:
        """Return the columns of values of a stored layout; None where there is none."""
        found = self._stored_boundings.get(identity)
        return None if found is None else found[1].slots

    def take(self, identity: str, slots: MeasureColumns) -> CachedBounding | None:
        """Return a stored layout that serves, its tables under their own names; it must be stored again."""
        found = self._stored_boundings.get(identity)
        if found is None or not found[1].serves(slots):
            return None
        number, layout = self._stored_boundings.pop(identity)
        for table in layout.tables:
            self._run(f"ALTER TABLE {_stored(table, number)} RENAME TO {table}")
        return layout

    def keep(self, identity: str, layout: CachedBounding) -> None:
        """Put the tables of a layout away; of too many, the one that was used least lately is dropped."""
        if self.most == 0:
            for table in layout.tables:
                self._run(f"DROP TABLE IF EXISTS {table}")
            return
        if identity in self._stored_boundings:
            self._drop(identity)
        self._next += 1
        for table in layout.tables:
            self._run(f"ALTER TABLE {table} RENAME TO {_stored(table, self._next)}")
        self._stored_boundings[identity] = self._next, layout
        while len(self._stored_boundings) > self.most:
            self._drop(next(iter(self._stored_boundings)))

    def _drop(self, identity: str) -> None:
        number, layout = self._stored_boundings.pop(identity)
        for table in layout.tables:
            self._run(f"DROP TABLE IF EXISTS {_stored(table, number)}")


def _stored(table: str, number: int) -> str:
    return f"{table}_{number}"
