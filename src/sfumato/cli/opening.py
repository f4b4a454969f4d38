"""From the words of a command line to a session: sources, unit, and the text of the query."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from sfumato import _check
from sfumato.cli.output.writing import read_text
from sfumato.cli.recorded import budget_words, recorded, unit_words
from sfumato.ledger.budget.renewal import Renewal
from sfumato.queries.engines.duckdb.column_types import TableTypes
from sfumato.session.connection import connect
from sfumato.session.session import Session
from sfumato.session.units import ROW, Row

__all__ = [
    "columns_of",
    "named_paths",
    "named_sources",
    "open_session",
    "query_text",
    "source_of",
    "types_of",
    "unit_of",
]

_STDIN = "-"
_PAIR = "be NAME=PATH"

Source: TypeAlias = Annotated[
    str, typer.Argument(metavar="SOURCE", help="File of the private rows, the table 'data'; or NAME=PATH.")
]
Unit: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--privacy-unit",
        metavar="COLUMN",
        help="Column that names who is protected; ROW makes each row a unit; repeated: rows that share any.",
    ),
]
Tables: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--table", metavar="NAME=PATH", help="Another private table; repeatable."),
]
Public: TypeAlias = Annotated[
    list[str] | None, typer.Option("--public", metavar="NAME=PATH", help="A public table; repeatable.")
]
Types: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="[TABLE.]COLUMN=TYPE",
        help="Type of a column of a CSV file, such as age=INT64; repeatable. Others are texts.",
    ),
]
Epsilon: TypeAlias = Annotated[float | None, typer.Option("--epsilon", help="The whole budget's epsilon.")]
Delta: TypeAlias = Annotated[float, typer.Option("--delta", help="The whole budget's delta.")]
Rho: TypeAlias = Annotated[float | None, typer.Option("--rho", help="A zCDP budget instead of --epsilon.")]
Mu: TypeAlias = Annotated[float | None, typer.Option("--mu", help="A Gaussian-DP budget instead.")]
LedgerAddress: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="FILE|URL",
        help="File, or postgresql://user@host/database, that keeps the budget; left out, it is forgotten.",
    ),
]
Analyst: TypeAlias = Annotated[
    str | None, typer.Option("--analyst", help="Who asks: charged to their account in the ledger as well.")
]
Purpose: TypeAlias = Annotated[
    str, typer.Option("--purpose", help="What the answer is for: one line, which the charge carries.")
]
Policy: TypeAlias = Annotated[
    Path | None,
    typer.Option("--policy", help="File of a privacy_policy: unit, budget, limits of queries."),
]
Renew: TypeAlias = Annotated[
    str,
    typer.Option(
        "--renew", metavar="PERIOD:COLUMN", help="A budget for each day, week, month, quarter, year."
    ),
]
InPeriod: TypeAlias = Annotated[
    str, typer.Option("--period", help="With --renew: which period's rows are asked about, such as 2026-01.")
]
Columns: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="[TABLE=]COLUMN,COLUMN",
        help="For a database: the columns that are meant of private tables; repeatable. No other is read.",
    ),
]
StatementTimeout: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--statement-timeout",
        metavar="SECONDS",
        help="For PostgreSQL: after which the server ends a statement; the charge stays.",
    ),
]
Head: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--head", metavar="FILE", help="With --ledger: where its chain stood when it was last looked at."
    ),
]
NewVersion: TypeAlias = Annotated[
    bool, typer.Option("--new-version", help="The data changed: go on with the same budget.")
]


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


def named_sources(source: str, tables: Sequence[str] | None, public: Sequence[str] | None) -> dict[str, str]:
    """Return the path of every table that a command line names, private and public.

    Examples
    --------
    >>> named_sources("people.parquet", None, ["states=states.csv"])
    {'private data': 'people.parquet', 'public states': 'states.csv'}
    """
    given = source_of(source, tables or ())
    private = {"data": given} if isinstance(given, str) else given
    listed = named_paths("public", public or ())
    return {f"private {name}": path for name, path in private.items()} | {
        f"public {name}": path for name, path in listed.items()
    }


def types_of(words: Sequence[str], private: Sequence[str], public: Sequence[str] = ()) -> TableTypes | None:
    """Return what `sfumato.connect` takes as types.

    Parameters
    ----------
    words : sequence of str
        Each COLUMN=TYPE of the one private table, or TABLE.COLUMN=TYPE.
    private, public : sequence of str
        The names of the tables.

    Raises
    ------
    ParameterError
        If one has no column or no type, names no table where there are several, or comes twice.

    Examples
    --------
    >>> types_of(["age=INT64", "data.day=DATE"], ["data"])
    {'data': {'age': 'INT64', 'day': 'DATE'}}
    """
    types: dict[str, dict[str, str]] = {}
    for word in words:
        column, _, type_ = word.rpartition("=")
        before, dot, after = column.partition(".")
        named = bool(dot) and before in {*private, *public}
        if not named and len(private) > 1:
            _check.refuse("--type", "be TABLE.COLUMN=TYPE", word, f"write --type {private[0]}.age=INT64")
        table, column = (before, after) if named else (private[0], column)
        if not column or not type_:
            _check.refuse("--type", "be COLUMN=TYPE", word, "write --type age=INT64")
        if column in types.setdefault(table, {}):
            _check.refuse("--type", "name each column once", word, "leave one out")
        types[table][column] = type_
    return types or None


def columns_of(words: Sequence[str]) -> list[str] | dict[str, list[str]] | None:
    """Return what `sfumato.connect` takes as columns.

    Parameters
    ----------
    words : sequence of str
        Each a list of columns with commas between them, of the only private table, or TABLE=LIST.

    Raises
    ------
    ParameterError
        If one is empty, or some name a table and some do not.

    Examples
    --------
    >>> columns_of(["person,state", "age"])
    ['person', 'state', 'age']
    >>> columns_of(["people=person,state", "visits=person"])
    {'people': ['person', 'state'], 'visits': ['person']}
    """
    tables: dict[str, list[str]] = {}
    for word in words:
        table, equals, listed = word.rpartition("=")
        names = listed.split(",")
        mixed = bool(tables) and ("" in tables) == bool(table)
        if not all(names) or bool(equals) != bool(table) or mixed:
            rule = "be COLUMN,COLUMN, or for every table TABLE=COLUMN,COLUMN"
            _check.refuse("--columns", rule, word, "write --columns person,state")
        tables.setdefault(table, []).extend(names)
    return tables.get("", tables or None)


def unit_of(words: Sequence[str]) -> str | Row | tuple[str, ...]:
    """Return the privacy unit: the word ``ROW`` makes each row a unit, any other names the column.

    Several columns are one unit, of all rows that share a value of any of them.
    """
    if len(words) > 1:
        return tuple(words)
    return ROW if words[0] == "ROW" else words[0]


def query_text(text: str | None, file: str | None = None) -> str:
    """Return the SQL: the argument, standard input where that is ``-``, or a file's content.

    Parameters
    ----------
    text, file : str or None
        One of the two.

    Raises
    ------
    ParameterError
        If both are given or none, or the file cannot be read.
    """
    if (text is None) == (file is None):
        found = "neither is given" if text is None else "both are given"
        _check.refuse_state("the query", "be given by SQL or by --file", found, "write one of them")
    if file is not None:
        return read_text("--file", file, "name a file of SQL")
    return sys.stdin.read() if text == _STDIN else str(text)


def _check_budget(**given: float | None) -> None:
    named = [f"--{name}" for name, value in given.items() if value is not None]
    if len(named) != 1:
        found = f"it is given by {' and '.join(named) or 'none of them'}"
        rule = "be given by one of --epsilon, --rho and --mu"
        _check.refuse_state("the budget", rule, found, "write --epsilon 1 --delta 1e-7")


def _renewal(text: str) -> Renewal | None:
    every, _, column = text.partition(":")
    return Renewal(every=every, column=column) if text else None


def open_session(
    source: Source,
    *,
    privacy_unit: Unit = None,
    tables: Tables = None,
    public: Public = None,
    types: Types = None,
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    rho: Rho = None,
    mu: Mu = None,
    policy: Policy = None,
    ledger: LedgerAddress = None,
    analyst: Analyst = None,
    purpose: Purpose = "",
    renew: Renew = "",
    period: InPeriod = "",
    new_version: NewVersion = False,
    columns: Columns = None,
    statement_timeout: StatementTimeout = None,
    head: Head = None,
) -> Session:
    """Connect to what a command line names; its arguments are those of every command that asks."""
    known = recorded(ledger) if policy is None else None
    if policy is None:
        if known is not None and epsilon is None and rho is None and mu is None:
            epsilon, delta, rho, mu = budget_words(known)
        _check_budget(epsilon=epsilon, rho=rho, mu=mu)
        if known is not None and not privacy_unit:
            privacy_unit = unit_words(known.privacy_unit, known.renewal)
        if not privacy_unit:
            rule = "be given, or a --policy, or a --ledger that has one unit for all tables"
            _check.refuse("--privacy-unit", rule, None, "name the column of the person")
        if known is not None and known.renewal is not None and not renew:
            renew = f"{known.renewal.every}:{known.renewal.column}"
    given, listed = source_of(source, tables or ()), named_paths("public", public or ())
    private = ["data"] if isinstance(given, str) else list(given)
    return connect(
        given,
        privacy_unit=unit_of(privacy_unit) if privacy_unit else None,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        mu=mu,
        policy=policy,
        ledger=ledger,
        analyst=analyst,
        purpose=purpose,
        renewal=_renewal(renew),
        period=period,
        public=listed or None,
        types=types_of(types or (), private, list(listed)),
        new_version=new_version,
        columns=columns_of(columns or ()),
        statement_timeout=statement_timeout,
        head=head,
    )
