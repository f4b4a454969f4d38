"""A private DuckDB: in memory, alone with its sources, and locked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import duckdb

from sfumato._check import refuse
from sfumato.frames.sources import FileSource, Source
from sfumato.queries.engines.duckdb.dialect import DUCKDB
from sfumato.queries.engines.duckdb.storage import pattern_of

__all__ = ["connect", "lock"]

_SIZE: Final = re.compile(r"\s*(?=[0-9.]*[1-9])[0-9]+(\.[0-9]+)?\s*([KMGT]i?B|%)\s*", re.IGNORECASE)


def connect(
    spill: str, *, memory_limit: str | None, threads: int | None, progress: bool = False
) -> duckdb.DuckDBPyConnection:
    """Open an empty database in memory that loads nothing by itself; what does not fit goes to ``spill``.

    Parameters
    ----------
    spill : str
        A folder for temporary files; empty for none.
    memory_limit : str or None
        Such as "4GB"; DuckDB's own limit if None.
    threads : int or None
        All cores if None.
    progress : bool
        Whether the database counts how much of a statement is done; it prints nothing of it.

    Returns
    -------
    duckdb.DuckDBPyConnection

    Examples
    --------
    >>> with connect("", memory_limit=None, threads=1) as connection:
    ...     connection.sql("SELECT 1 + 1").fetchall()
    [(2,)]
    """
    config: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": spill,
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "allow_persistent_secrets": "false",
        "python_enable_replacements": "false",
        "preserve_insertion_order": "false",
    }
    if memory_limit is not None:
        _check_size(memory_limit)
        config["memory_limit"] = memory_limit
    if threads is not None:
        config["threads"] = str(threads)
    connection = duckdb.connect(":memory:", config=config)
    connection.execute("SET TimeZone = 'UTC'")
    # A progress bar would show how long private work takes. In Jupyter it cannot be set without ipywidgets,
    # not even to what it is.
    if progress:
        with suppress(Exception):
            connection.execute("SET enable_progress_bar_print = false")
            connection.execute("SET enable_progress_bar = true")
    elif connection.execute("SELECT current_setting('enable_progress_bar')").fetchall() != [(False,)]:
        connection.execute("SET enable_progress_bar = false")
    return connection


def _check_size(memory_limit: object) -> None:
    if not isinstance(memory_limit, str) or not _SIZE.fullmatch(memory_limit):
        refuse("memory_limit", "be a positive size such as '2GB'", memory_limit, "write a number and a unit")


def lock(connection: duckdb.DuckDBPyConnection, sources: Mapping[str, Source]) -> None:
    """Shut the door behind the sources: no other file, no network, no setting can be reached from now on."""
    paths = [path for s in sources.values() if isinstance(s, FileSource) for path in s.paths]
    allowed = ", ".join(DUCKDB.string(text) for path in paths for text in {str(path), pattern_of(path)})
    connection.execute(f"SET allowed_paths = [{allowed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
