"""One order of ties for all engines: ranks by MD5 of the values as texts, which every engine writes alike."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sfumato.queries.engines.dialects.base import Dialect
from sfumato.queries.engines.duckdb import engine
from sfumato.queries.engines.duckdb.dialect import DuckDB
from sfumato.queries.engines.duckdb.ranks import RankedDuckDB
from sfumato.queries.plan.query import ColumnType

__all__ = ["rank_alike", "rank_by_sql"]


def rank_alike(monkeypatch: pytest.MonkeyPatch, *dialects: type[Dialect]) -> None:
    """Let dialects choose the same rows and groups for the same secret, and DuckDB's engine with them."""
    for dialect in dialects:
        monkeypatch.setattr(dialect, "rank", _rank)
    rank_by_sql(monkeypatch)


def rank_by_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let DuckDB's engine choose rows and groups by its dialect's SQL, without functions of its own."""
    monkeypatch.setattr(RankedDuckDB, "rank", DuckDB.rank)
    monkeypatch.setattr(engine, "bound_rows", lambda *_, **__: None)  # the kernel leaves all to SQL


def _rank(self: Dialect, words: tuple[int, int], columns: Sequence[str]) -> str:
    texts = [f"'{words[0]}'"]
    for column in columns:
        text = f"replace(CAST({column} AS {self.types[ColumnType.TEXT]}), 'Infinity', 'inf')"
        texts.append(f"coalesce('v' || regexp_replace({text}, '[.]0$', ''), 'n')")
    return f"md5({' || chr(124) || '.join(texts)})"
