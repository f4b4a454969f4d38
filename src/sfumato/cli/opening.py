"""From the words of a command line to a session: sources, unit, and the text of the query."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from sfumato import _check
from sfumato.queries.session import Session, connect
from sfumato.queries.sources import ROW, Row

__all__ = ["named_paths", "open_session", "query_text", "source_of", "unit_of"]

_STDIN = "-"
_PAIR = "be NAME=PATH"


def source_of(source: str, tables: Sequence[str]) -> str | Mapping[str, str]:
    """Return what `sfumato.connect` takes: one path, or paths by the names of their tables.

    Parameters
    ----------
    source : str
        A path, the table ``data``; or NAME=PATH, unless there is a file of that whole name.
    tables : sequence of str
        Further tables, each NAME=PATH.

    Examples
    --------
    >>> source_of("people.parquet", [])
    'people.parquet'
    >>> source_of("people.parquet", ["visits=visits.csv"])
    {'data': 'people.parquet', 'visits': 'visits.csv'}
    >>> source_of("people=shop.duckdb", [])
    {'people': 'shop.duckdb'}
    """
    name, equals, path = source.partition("=")
    named = bool(equals) and name.isidentifier() and not Path(source).exists()
    if not named and not tables:
        return source
    first = f"{name}={path}" if named else f"data={source}"
    return named_paths("table", [first, *tables])


def named_paths(option: str, pairs: Sequence[str]) -> dict[str, str]:
    """Read NAME=PATH options.

    Raises
    ------
    ParameterError
        If one has no name or no path, or a name comes twice.
    """
    paths: dict[str, str] = {}
    for pair in pairs:
        name, _, path = pair.partition("=")
        if not name or not path:
            _check.refuse(option, _PAIR, pair, f"pass --{option} people=people.parquet")
        if name in paths:
            _check.refuse(option, "name each table once", pair, "use another name")
        paths[name] = path
    return paths


def unit_of(word: str) -> str | Row:
    """Return the privacy unit: the word ``ROW`` makes each row a unit, any other names the column."""
    return ROW if word == "ROW" else word


def query_text(text: str) -> str:
    """Return the SQL, from standard input where the argument is ``-``."""
    return sys.stdin.read() if text == _STDIN else text


def open_session(
    source: str,
    *,
    tables: Sequence[str],
    public: Sequence[str],
    privacy_unit: str,
    epsilon: float | None,
    delta: float,
    rho: float | None,
    mu: float | None,
    ledger: Path | None,
    new_version: bool,
) -> Session:
    """Connect to the sources that a command line names."""
    return connect(
        source_of(source, tables),
        privacy_unit=unit_of(privacy_unit),
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        mu=mu,
        ledger=ledger,
        public=named_paths("public", public) or None,
        new_version=new_version,
    )
