"""A thread's database: opened once, anew after it ended, and for nobody else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from sfumato.queries.engines.duckdb.thread_database import ThreadDatabase


def counted() -> tuple[ThreadDatabase, list[duckdb.DuckDBPyConnection]]:
    opened = list[duckdb.DuckDBPyConnection]()

    def open_one() -> duckdb.DuckDBPyConnection:
        opened.append(duckdb.connect(":memory:"))
        return opened[-1]

    return ThreadDatabase(open_one), opened


def test_it_is_opened_once_and_what_was_registered_goes() -> None:
    database, opened = counted()
    with database.cursor() as first:
        first.register("rows", pa.table({"n": [1]}))
        assert first.execute("SELECT n FROM rows").fetchall() == [(1,)]
    with database.cursor() as second, pytest.raises(duckdb.CatalogException):
        second.execute("SELECT n FROM rows")
    assert len(opened) == 1


def test_one_that_ended_is_opened_anew() -> None:
    database, opened = counted()
    database.cursor().close()
    opened[0].close()
    with database.cursor() as connection:
        assert connection.execute("SELECT 2").fetchall() == [(2,)]
    assert len(opened) == 2


def test_one_that_an_internal_error_ended_is_opened_anew() -> None:
    class Ended:
        """As DuckDB leaves a database: it gives connections, and answers nothing."""

        def execute(self, _: str) -> None:
            raise duckdb.FatalException("database has been invalidated")

        def cursor(self) -> Ended:
            return self

    opened: list[Any] = [duckdb.connect(":memory:"), Ended()]
    database = ThreadDatabase(opened.pop)
    database.cursor()
    with database.cursor() as connection:
        assert connection.execute("SELECT 3").fetchall() == [(3,)]


def test_each_thread_and_each_process_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    database, opened = counted()
    database.cursor().close()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: database.cursor().close()).result()
    assert len(opened) == 2
    monkeypatch.setattr("os.getpid", lambda: -1)  # as a forked child has another
    database.cursor().close()
    assert len(opened) == 3
