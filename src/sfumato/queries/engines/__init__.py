"""Engines: each computes the exact bounded integers of a plan where the data lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.queries.engines.duckdb.engine import DuckDBEngine
    from sfumato.queries.engines.engine import Engine

__all__ = ["DuckDBEngine", "Engine"]

__getattr__, __dir__ = attach(
    __name__,
    {
        "DuckDBEngine": "sfumato.queries.engines.duckdb.engine",
        "Engine": "sfumato.queries.engines.engine",
    },
)
