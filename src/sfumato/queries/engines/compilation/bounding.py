"""Bounding in SQL: which rows and which groups of a unit count, and the exact sums over what stays.

The steps build one another's input, each a SELECT with a name; an engine keeps them as temporary tables, or
chains them in one WITH:

``parts``   one row per unit and group: the group's rank ``h``, rows, values and exact sums
``cuts``    for units in too many groups: the rank from which their groups are dropped
``crowded`` the parts that stay and hold too many rows
``chosen``  their rows that stay, one by one: only where rows are counted by bins, or values are distinguished
``trimmed`` those parts again, from the rows that stay

Most units need none of the last four, so only those that exceed a limit pay for it.

Notes
-----
Guarantee: the groups a unit keeps are a function of that unit's own keys and of the secret; the rows it
keeps, in a group or in all groups together, are a function of its own rows there and of the secret. So
removing one unit changes no other unit's contribution, whatever the ranking function is: the bounds on
sensitivity need nothing of it. Only fairness (each group, and each row, has the same chance to stay) rests on
the function.
In the embedded DuckDB that is SipHash-2-4, which its bounding kernel and its SQL share
(:mod:`~sfumato.queries.engines.duckdb.ranks`). In text for another DuckDB it is 63 bits of the ``hash`` of
the values, keyed by two rounds of xor with a secret word and hash again (an Even-Mansour construction), for
DuckDB's plain ``hash(a, b)`` is an xor of mixed parts and would prefer some keys to others for every unit
alike; ranks by MD5 or SHA-256 would take eight and thirteen times as long (measured, DuckDB 2.0). Two groups
of one unit with the same rank (fewer than one unit in 10**13, with a thousand groups each) are dropped
together where they lie at the cut.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sfumato.queries.engines.compilation.measure_columns import MeasureColumns
from sfumato.queries.engines.dialects.base import REACH, Dialect

__all__ = ["Bounding", "Step", "secret_word"]


@dataclass(frozen=True, slots=True)
class Step:
    """A table that later steps read, and the SELECT that makes it. What is in it is raw data."""

    name: str
    select: str


def _rank(dialect: Dialect, secret: bytes, purpose: str, columns: Sequence[str]) -> str:
    return dialect.rank((secret_word(secret, purpose + " 1"), secret_word(secret, purpose + " 2")), columns)


def secret_word(secret: bytes, purpose: str) -> int:
    """Return a secret word of 64 bits for one purpose."""
    return int.from_bytes(hmac.new(secret, purpose.encode(), hashlib.sha256).digest()[:8], "big")


@dataclass(frozen=True, slots=True)
class Bounding:
    """The steps of one job.

    Parameters
    ----------
    rows : callable
        Returns a SELECT of the rows: ``u`` unless rows are units, the keys, and the slots' columns; given
        the name of a table of units and keys, only of its parts.
    keys : tuple of str
        The key columns in ``rows``.
    slots : MeasureColumns
    max_groups, max_rows : int or None
        None where no limit applies.
    secret : bytes
        Keys the choice of rows and groups.
    all_rows : int or None
        The most rows of a unit in all groups together, instead of the other two.
    """

    rows: Callable[[str | None], str]
    keys: tuple[str, ...]
    slots: MeasureColumns
    max_groups: int | None
    max_rows: int | None
    secret: bytes = field(repr=False)
    all_rows: int | None = None

    @property
    def trims_rows(self) -> bool:
        """Whether rows are chosen; where rows carry no values, a count of them is cut instead."""
        if self.all_rows is not None:
            return True
        return self.max_rows is not None and bool(self.slots.items)

    def steps(self) -> list[Step]:
        """Return the steps in order; one that finds ``crowded`` empty need not go on."""
        steps = [self.parts()]
        if self.max_groups is not None:
            steps.append(self.cuts())
        if self.trims_rows:
            steps += [self.crowded(), *([self.chosen()] if self.slots.rowwise else []), self.trimmed()]
        return steps

    def parts(self) -> Step:
        """Return the step ``parts``."""
        by = ", ".join(("u", *self.keys))
        ranks = [] if self.max_groups is None else [f"{self._group_rank()} AS h"]
        items = ", ".join(("u", *self.keys, *ranks, *self.slots.grouped()))
        rows = f"({self.rows(None)}) AS r WHERE u IS NOT NULL"
        return Step("parts", f"SELECT {items} FROM {rows} GROUP BY {by}")

    def cuts(self) -> Step:
        """Return the step ``cuts``: a group stays if its rank is below its unit's cut.

        The cut is the rank after the last that may stay: never more groups than may stay are below it, also
        where ranks are equal, so the limit holds always.
        """
        most = REACH if self.max_groups is None else self.max_groups
        heavy = f"SELECT u FROM parts GROUP BY u HAVING count(*) > {most}"
        crowd = f"parts {self.dialect.semi_join} ({heavy}) AS o USING (u)"
        if aggregate := self.dialect.nth_least("h", most + 1):
            return Step("cuts", f"SELECT u, {aggregate} AS cut FROM {crowd} GROUP BY u")
        place = f"row_number() OVER (PARTITION BY {self._within(['u'])} ORDER BY h) AS place"
        places = f"SELECT u, h AS cut, {place} FROM {crowd}"
        return Step("cuts", f"SELECT u, cut FROM ({places}) AS r WHERE place = {most + 1}")

    def _within(self, columns: Sequence[str]) -> str:
        return ", ".join(self.dialect.partition(column) for column in columns)

    def _group_rank(self) -> str:
        return _rank(self.dialect, self.secret, "groups", ["u", *self.keys])

    def _row_rank(self) -> str:
        """Return the rank of a row, of which ``i`` is the number among those with the same values."""
        return _rank(self.dialect, self.secret, "rows", ["u", *self.keys, *self.slots.names, "i"])

    @property
    def dialect(self) -> Dialect:
        """What the texts are written in."""
        return self.slots.dialect

    def _staying_parts(self, condition: str) -> str:
        """Return the FROM clause of the parts that stay and meet ``condition``."""
        if self.max_groups is None:
            return f"FROM parts WHERE {condition}"
        if self.dialect.anti_join:
            beyond = f"{self.dialect.anti_join} cuts AS o ON r.u = o.u AND r.h >= o.cut"
            return f"FROM parts AS r {beyond} WHERE {condition}"
        return f"FROM parts LEFT JOIN cuts USING (u) WHERE {condition} AND (cut IS NULL OR h < cut)"

    def crowded(self) -> Step:
        """Return the step ``crowded``: where all rows are bounded, every part of a unit with more of them."""
        columns = ", ".join(("u", *self.keys))
        if self.all_rows is not None:
            heavy = f"SELECT u FROM parts GROUP BY u HAVING sum(n) > {self.all_rows}"
            crowd = f"parts {self.dialect.semi_join} ({heavy}) AS h USING (u)"
            return Step("crowded", f"SELECT {columns} FROM {crowd}")
        return Step("crowded", f"SELECT {columns} {self._staying_parts(f'n > {self.max_rows}')}")

    def chosen(self) -> Step:
        """Return the step ``chosen``."""
        return Step("chosen", f"SELECT {', '.join(('u', *self.keys, *self.slots.names))} {self._chosen()}")

    def trimmed(self) -> Step:
        """Return the step ``trimmed``."""
        key = ", ".join(("u", *self.keys))
        source = "FROM chosen" if self.slots.rowwise else self._chosen()
        return Step("trimmed", f"SELECT {', '.join((key, *self.slots.grouped()))} {source} GROUP BY {key}")

    def _chosen(self) -> str:
        """Return the FROM clause of the rows that stay in parts that hold too many."""
        return self._chosen_of(self.rows("crowded"))

    def _chosen_of(self, rows: str) -> str:
        """Return the FROM clause of the rows that stay of the rows of units.

        Rows with the same values are distinguished by their number among them: which of them carries which
        number changes nothing, for they are the same in every way that counts.
        """
        key, values = ["u", *self.keys], self.slots.names
        every = ", ".join(key + values)
        numbered = (
            f"SELECT {every}, row_number() OVER (PARTITION BY {self._within(key + values)} ORDER BY u) AS i "
            f"FROM ({rows}) AS r"
        )
        ranked = f"SELECT {every}, i, {self._row_rank()} AS h FROM ({numbered}) AS r"
        within, most = (key, self.max_rows) if self.all_rows is None else (["u"], self.all_rows)
        # the values after the rank make the order total, so that equal ranks leave no choice to the engine
        order = ", ".join(["h", *(values if self.all_rows is None else [*self.keys, *values]), "i"])
        place = f"row_number() OVER (PARTITION BY {self._within(within)} ORDER BY {order}) AS place"
        places = f"SELECT {every}, {place} FROM ({ranked}) AS r"
        return f"FROM ({places}) AS r WHERE place <= {most}"

    def leaves(self, index: int, *, unit: bool, any_crowded: bool) -> str:
        """Return the SELECT of a measure's counts by bin: the keys, ``leaf`` and ``n``; no empty bins."""
        source = self._staying((*self.keys, *self.slots.names), unit=unit, any_crowded=any_crowded)
        by = ", ".join((*self.keys, "leaf"))
        leaves = f"SELECT {', '.join((*self.keys, f'{self.slots.leaf(index)} AS leaf'))} FROM ({source}) AS r"
        return f"SELECT {by}, count(*) AS n FROM ({leaves}) AS r WHERE leaf IS NOT NULL GROUP BY {by}"

    def distinct(self, index: int, *, unit: bool, any_crowded: bool) -> str:
        """Return the SELECT of the numbers of distinct values of a measure: the keys and ``many``.

        Notes
        -----
        Guarantee: a unit brings at most ``upper`` of its values to a group, chosen by a rank that depends on
        its own values and on the secret only. So without it the set of a group's values loses at most so
        many, and gains none: the other units choose as before.
        """
        value, most = self.slots.value(index), self.slots.measures[index].upper
        by = ", ".join(self.keys)
        columns = (*(["u"] if unit else []), *self.keys, value)
        staying = self._staying(columns, unit=unit, any_crowded=any_crowded)
        values = f"SELECT DISTINCT {', '.join(columns)} FROM ({staying}) AS r WHERE {value} IS NOT NULL"
        if unit:
            key = ("u", *self.keys)
            rank = _rank(self.dialect, self.secret, f"values {index}", [*key, value])
            ranked = f"SELECT {', '.join(columns)}, {rank} AS h FROM ({values}) AS r"
            place = f"row_number() OVER (PARTITION BY {', '.join(key)} ORDER BY h, {value}) AS place"
            placed = f"SELECT {', '.join((*self.keys, value))}, {place} FROM ({ranked}) AS r"
            values = f"SELECT * FROM ({placed}) AS r WHERE place <= {most}"
        grouping = f" GROUP BY {by}" if by else ""
        counted = f"count(DISTINCT {value}) AS many"
        return f"SELECT {', '.join((*self.keys, counted))} FROM ({values}) AS r{grouping}"

    def _staying(self, columns: Sequence[str], *, unit: bool, any_crowded: bool) -> str:
        """Return a SELECT of columns of the rows that stay, of which the sums are.

        These are all rows of a part that stays, and the chosen ones where it is crowded.
        """
        names = ", ".join(columns)
        rows = f"({self.rows(None)}) AS r"
        if unit and self.max_groups is None:
            rows = f"{rows} WHERE u IS NOT NULL"
        elif unit:
            stays = f"(cut IS NULL OR {self._group_rank()} < cut)"
            rows = f"{rows} LEFT JOIN cuts USING (u) WHERE u IS NOT NULL AND {stays}"
        source = f"SELECT {names} FROM {rows}"
        if any_crowded:
            mine = ", ".join(f"r.{name}" for name in columns)
            on = " AND ".join(("r.u = o.u", *(self.dialect.same(f"r.{k}", f"o.{k}") for k in self.keys)))
            staying_rows = f"SELECT {', '.join(dict.fromkeys(('u', *self.keys, *columns)))} FROM {rows}"
            source = (
                f"SELECT {mine} FROM ({staying_rows}) AS r LEFT JOIN crowded AS o ON {on} WHERE o.u IS NULL"
            )
            source += f" UNION ALL SELECT {names} FROM chosen"
        return source

    def staying(self, *, unit: bool, any_crowded: bool) -> str:
        """Return the SELECT of the parts that count: the keys, and the columns of a unit's part."""
        names = ", ".join((*self.keys, *self.slots.part_names))
        if not unit:
            return f"SELECT {', '.join((*self.keys, *self.slots.single()))} FROM ({self.rows(None)}) AS r"
        if self.all_rows is not None:
            parts = f"SELECT {names} FROM parts"
            if any_crowded:
                heavy = "(SELECT u, count(*) AS many FROM crowded GROUP BY u) AS o"
                parts += f" LEFT JOIN {heavy} USING (u) WHERE many IS NULL"
                parts += f" UNION ALL SELECT {names} FROM trimmed"
            return parts
        if self.max_rows is None:
            return f"SELECT {names} {self._staying_parts('TRUE')}"
        if self.trims_rows:
            trimmed = f" UNION ALL SELECT {names} FROM trimmed" if any_crowded else ""
            return f"SELECT {names} {self._staying_parts(f'n <= {self.max_rows}')}{trimmed}"
        cut = ", ".join((*self.keys, f"least(n, {self.max_rows}) AS n"))
        return f"SELECT {cut} {self._staying_parts('TRUE')}"

    def totals(self, *, unit: bool, any_crowded: bool, parts_table: str | None = None) -> str:
        """Return the SELECT of the sums per group, of a table of the parts that count if one is named."""
        names = ", ".join((*self.keys, *self.slots.part_names))
        staying = self.staying(unit=unit, any_crowded=any_crowded)
        parts = staying if parts_table is None else f"SELECT {names} FROM {parts_table}"
        slots, clamped = self.slots, self.dialect.clamped
        count = range(len(slots.measures))
        means = ", ".join((names, *slots.means()))
        each = ", ".join((*self.keys, *(f"{slots.contribution(i)} AS m{i}" for i in count)))
        sums = [f"coalesce({self._measure_total(i)}, 0) AS m{i}" for i in count]
        ends = ", ".join((*self.keys, *(f"{clamped(f'm{i}', (-REACH, REACH))} AS m{i}" for i in count)))
        summed = ", ".join((*self.keys, *sums))
        grouping = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        contributions = f"SELECT {each} FROM (SELECT {means} FROM ({parts}) AS r) AS r"
        totals = f"SELECT {ends} FROM (SELECT {summed} FROM ({contributions}) AS r{grouping}) AS r"
        return self.with_distinct(totals, unit=unit, any_crowded=any_crowded)

    def _measure_total(self, index: int) -> str:
        """Return the exact sum over units of what they add to a measure."""
        return self.dialect.total(f"m{index}", narrow=False)

    def with_distinct(self, totals: str, *, unit: bool, any_crowded: bool) -> str:
        """Return the SELECT of the sums per group with the numbers of distinct values in their positions."""
        distinct = self.slots.distinct
        if not distinct:
            return totals
        items = [f"t.{key}" for key in self.keys]
        items += [
            f"coalesce(d{index}.many, 0) AS m{index}" if index in distinct else f"t.m{index}"
            for index in range(len(self.slots.measures))
        ]
        joined = f"({totals}) AS t"
        for index in distinct:
            same = " AND ".join(self.dialect.same(f"t.{key}", f"d{index}.{key}") for key in self.keys)
            counts = self.distinct(index, unit=unit, any_crowded=any_crowded)
            joined += f" LEFT JOIN ({counts}) AS d{index} ON {same or 'TRUE'}"
        return f"SELECT {', '.join(items)} FROM {joined}"
