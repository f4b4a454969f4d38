"""Bounding in SQL: which rows and which groups of a unit count, and the exact sums over what stays.

The statements build one another's input as temporary tables:

``parts``   one row per unit and group: rows, values and exact sums
``cuts``    for units in too many groups: the rank from which their groups are dropped
``crowded`` the parts that stay and hold too many rows
``trimmed`` those parts again, from the rows that stay

Most units need none of the last three, so only those that exceed a limit pay for it.

Notes
-----
Guarantee: the groups a unit keeps are a function of that unit's own keys and of the secret; the rows it
keeps in a group are a function of its own rows in that group and of the secret. So removing one unit
changes no other unit's contribution, whatever the ranking function is: the bounds on sensitivity need
nothing of it. Only fairness (each group, and each row, has the same chance to stay) rests on the function:
DuckDB's 64-bit ``hash`` of the values, keyed by two rounds of xor with a secret word and hash again (an
Even-Mansour construction), for DuckDB's plain ``hash(a, b)`` is an xor of mixed parts and would prefer some
keys to others for every unit alike. Ranks by MD5 or SHA-256 take eight and thirteen times as long (measured,
DuckDB 2.0) and would protect nothing more. Two groups of one unit with the same 64-bit rank (fewer than one
unit in 10**13, with a thousand groups each) are dropped together where they lie at the cut.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass

from sfumato.queries.engines.slots import REACH, Slots, clamped

__all__ = ["TEMPORARY", "Bounding"]

TEMPORARY = ("parts", "cuts", "crowded", "trimmed")
"""The temporary tables, all of them raw data."""


def _word(secret: bytes, purpose: str) -> str:
    """Return a secret 64-bit word for one purpose, as a literal."""
    digest = hmac.new(secret, purpose.encode(), hashlib.sha256).digest()
    return f"CAST('{int.from_bytes(digest[:8], 'big')}' AS UBIGINT)"


def _rank(secret: bytes, purpose: str, columns: list[str]) -> str:
    first, second = _word(secret, purpose + " 1"), _word(secret, purpose + " 2")
    return f"hash(xor(hash(xor(hash({', '.join(columns)}), {first})), {second}))"


@dataclass(frozen=True, slots=True)
class Bounding:
    """The statements of one job.

    Parameters
    ----------
    rows : callable
        Returns a SELECT of the rows: ``u`` unless rows are units, the keys, and the slots' columns; given
        the name of a table of units and keys, only of its parts.
    keys : tuple of str
        The key columns in ``rows``.
    slots : Slots
    max_groups, max_rows : int or None
        None where no limit applies.
    secret : bytes
        Keys the choice of rows and groups.
    """

    rows: Callable[[str | None], str]
    keys: tuple[str, ...]
    slots: Slots
    max_groups: int | None
    max_rows: int | None
    secret: bytes

    @property
    def trims_rows(self) -> bool:
        """Whether rows are chosen; where rows carry no values, a count of them is cut instead."""
        return self.max_rows is not None and bool(self.slots.items)

    def parts(self) -> str:
        """Return the statement that makes ``parts``."""
        by = ", ".join(("u", *self.keys))
        items = ", ".join(("u", *self.keys, *self.slots.grouped()))
        rows = f"({self.rows(None)}) WHERE u IS NOT NULL"
        return f"CREATE TEMP TABLE parts AS SELECT {items} FROM {rows} GROUP BY {by}"

    def cuts(self) -> str:
        """Return the statement that makes ``cuts``: a group stays if its rank is below its unit's cut.

        The cut is the rank after the last that may stay: never more groups than may stay are below it, also
        where ranks are equal, so the limit holds always.
        """
        most = REACH if self.max_groups is None else self.max_groups
        heavy = f"SELECT u FROM parts GROUP BY u HAVING count(*) > {most}"
        ranked = f"SELECT u, {self._group_rank()} AS cut FROM parts SEMI JOIN ({heavy}) USING (u)"
        order = "row_number() OVER (PARTITION BY u ORDER BY cut)"
        return f"CREATE TEMP TABLE cuts AS SELECT u, cut FROM ({ranked}) QUALIFY {order} = {most + 1}"

    def _group_rank(self) -> str:
        return _rank(self.secret, "groups", ["u", *self.keys])

    def _kept(self, condition: str) -> str:
        """Return the FROM clause of the parts that stay and meet ``condition``."""
        if self.max_groups is None:
            return f"FROM parts WHERE {condition}"
        stays = f"(cut IS NULL OR {self._group_rank()} < cut)"
        return f"FROM parts LEFT JOIN cuts USING (u) WHERE {condition} AND {stays}"

    def crowded(self) -> str:
        """Return the statement that makes ``crowded``."""
        columns = ", ".join(("u", *self.keys))
        return f"CREATE TEMP TABLE crowded AS SELECT {columns} {self._kept(f'n > {self.max_rows}')}"

    def trimmed(self) -> str:
        """Return the statement that makes ``trimmed``.

        Rows with the same values are told apart by their number among them: which of them carries which
        number changes nothing, for they are the same in every way that counts.
        """
        key, values = ["u", *self.keys], self.slots.names
        numbered = (
            f"SELECT *, row_number() OVER (PARTITION BY {', '.join(key + values)}) AS i "
            f"FROM ({self.rows('crowded')})"
        )
        ranked = f"SELECT *, {_rank(self.secret, 'rows', [*key, *values, 'i'])} AS h FROM ({numbered})"
        # the values after the rank make the order total, so that equal ranks leave no choice to the engine
        order = ", ".join(["h", *values, "i"])
        chosen = (
            f"SELECT * FROM ({ranked}) "
            f"QUALIFY row_number() OVER (PARTITION BY {', '.join(key)} ORDER BY {order}) <= {self.max_rows}"
        )
        items = ", ".join((*key, *self.slots.grouped()))
        return f"CREATE TEMP TABLE trimmed AS SELECT {items} FROM ({chosen}) GROUP BY {', '.join(key)}"

    def totals(self, *, unit: bool, any_crowded: bool) -> str:
        """Return the SELECT of the sums per group."""
        names = ", ".join((*self.keys, *self.slots.part_names))
        if not unit:
            parts = f"SELECT {', '.join((*self.keys, *self.slots.single()))} FROM ({self.rows(None)})"
        elif self.max_rows is None:
            parts = f"SELECT {names} {self._kept('TRUE')}"
        elif self.trims_rows:
            parts = f"SELECT {names} {self._kept(f'n <= {self.max_rows}')}"
            parts += f" UNION ALL SELECT {names} FROM trimmed" if any_crowded else ""
        else:
            cut = ", ".join((*self.keys, f"least(n, {self.max_rows}) AS n"))
            parts = f"SELECT {cut} {self._kept('TRUE')}"
        slots = self.slots
        count = range(len(slots.measures))
        means = ", ".join(("*", *slots.means()))
        each = ", ".join((*self.keys, *(f"{slots.contribution(i)} AS m{i}" for i in count)))
        sums = ", ".join((*self.keys, *(f"coalesce(sum(m{i}), 0) AS m{i}" for i in count)))
        total = ", ".join((*self.keys, *(f"{clamped(f'm{i}', (-REACH, REACH))} AS m{i}" for i in count)))
        grouping = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        contributions = f"SELECT {each} FROM (SELECT {means} FROM ({parts}))"
        return f"SELECT {total} FROM (SELECT {sums} FROM ({contributions}){grouping})"
