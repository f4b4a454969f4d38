"""A relation as one SELECT of a dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sfumato.queries.engines.compilation.terms import TypedSql
from sfumato.queries.engines.dialects.base import Dialect

__all__ = ["SelectLayer", "selected"]


@dataclass(frozen=True, slots=True)
class SelectLayer:
    """A SELECT: its text, and where its columns are found by case-folded name; the unit is in ``u``.

    ``stored`` is the engine's own type of the unit.
    """

    sql: str
    columns: Mapping[str, TypedSql]
    unit: bool
    stored: str = ""


def selected(items: Sequence[str], source: str, dialect: Dialect, tail: str = "") -> str:
    """Return a SELECT of some items from another SELECT."""
    rest = f" {tail}" if tail else ""
    return f"SELECT {', '.join(items)} FROM ({source}{dialect.fence}) AS r{rest}"
