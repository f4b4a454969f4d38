"""Private SQL: text, typed plan, price, charge, bounded integers, noise, released table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.queries.connecting import connect
    from sfumato.queries.release import TableRelease
    from sfumato.queries.rendered import render_sql
    from sfumato.queries.session import Session
    from sfumato.queries.sources import ROW

__all__ = ["ROW", "Session", "TableRelease", "connect", "render_sql"]

__getattr__, __dir__ = attach(
    __name__,
    {
        "ROW": "sfumato.queries.sources",
        "Session": "sfumato.queries.session",
        "TableRelease": "sfumato.queries.release",
        "connect": "sfumato.queries.connecting",
        "render_sql": "sfumato.queries.rendered",
    },
)
