"""A database of DuckDB that each thread opens once, since opening one takes longer than a small statement.

>>> database = ThreadDatabase(lambda: duckdb.connect(":memory:"))
>>> with database.cursor() as connection:
...     connection.execute("SELECT 7").fetchall()
[(7,)]
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import final

import duckdb

__all__ = ["ThreadDatabase"]


@final
class ThreadDatabase(threading.local):
    """An empty database for statements that leave nothing behind in it; a forked child opens its own.

    Parameters
    ----------
    open_database : callable
        Opens one.
    """

    def __init__(self, open_database: Callable[[], duckdb.DuckDBPyConnection]) -> None:
        self._open = open_database
        self._process = 0
        self._database: duckdb.DuckDBPyConnection | None = None

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """Return a connection of its own: whatever is registered there goes when it is closed.

        Returns
        -------
        duckdb.DuckDBPyConnection
        """
        if self._database is not None and self._process == os.getpid():
            with suppress(duckdb.Error):
                self._database.execute("SELECT 1")  # an internal error of DuckDB ends a database
                return self._database.cursor()
        self._process, self._database = os.getpid(), self._open()
        return self._database.cursor()
