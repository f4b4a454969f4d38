"""``sfumato sql`` and ``sfumato explain``: one query, answered or only described."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from sfumato.cli.opening import open_session, query_text
from sfumato.cli.writing import Format, check_output, write

if TYPE_CHECKING:
    from sfumato.queries.release import TableRelease
    from sfumato.queries.session import Session

__all__ = ["answer", "explain"]

Source: TypeAlias = Annotated[
    str, typer.Argument(metavar="SOURCE", help="File of the private rows, the table 'data'; or NAME=PATH.")
]
Text: TypeAlias = Annotated[str, typer.Argument(metavar="SQL", help="The query; '-' reads standard input.")]
Unit: TypeAlias = Annotated[
    str, typer.Option("--privacy-unit", help="Column that names who is protected; ROW makes each row a unit.")
]
Tables: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--table", metavar="NAME=PATH", help="Another private table; repeatable."),
]
Public: TypeAlias = Annotated[
    list[str] | None, typer.Option("--public", metavar="NAME=PATH", help="A public table; repeatable.")
]
Epsilon: TypeAlias = Annotated[float | None, typer.Option("--epsilon", help="The whole budget's epsilon.")]
Delta: TypeAlias = Annotated[float, typer.Option("--delta", help="The whole budget's delta.")]
Rho: TypeAlias = Annotated[float | None, typer.Option("--rho", help="A zCDP budget instead of --epsilon.")]
Mu: TypeAlias = Annotated[float | None, typer.Option("--mu", help="A Gaussian-DP budget instead.")]
LedgerFile: TypeAlias = Annotated[
    Path | None, typer.Option("--ledger", help="File that keeps the budget; left out, it is forgotten.")
]
NewVersion: TypeAlias = Annotated[
    bool, typer.Option("--new-version", help="The data changed: go on with the same budget.")
]
Style: TypeAlias = Annotated[Format, typer.Option("--format", help="How the answer is written.")]
Output: TypeAlias = Annotated[Path | None, typer.Option("--output", help="File for the answer.")]
NoIntervals: TypeAlias = Annotated[bool, typer.Option("--no-intervals", help="Leave the intervals out.")]


def answer(
    source: Source,
    text: Text,
    *,
    privacy_unit: Unit,
    tables: Tables = None,
    public: Public = None,
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    rho: Rho = None,
    mu: Mu = None,
    ledger: LedgerFile = None,
    new_version: NewVersion = False,
    style: Style = Format.TABLE,
    output: Output = None,
    no_intervals: NoIntervals = False,
) -> None:
    """Answer a query with differential privacy, and charge the ledger for it."""
    check_output(style, output)
    with open_session(
        source,
        tables=tables or (),
        public=public or (),
        privacy_unit=privacy_unit,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        mu=mu,
        ledger=ledger,
        new_version=new_version,
    ) as session:
        release = session.sql(query_text(text))
        write(release.to_arrow(intervals=not no_intervals), style, output)
        typer.echo(_account(session, release, kept=ledger is not None), err=True)


def explain(
    source: Source,
    text: Text,
    *,
    privacy_unit: Unit,
    tables: Tables = None,
    public: Public = None,
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    rho: Rho = None,
    mu: Mu = None,
    ledger: LedgerFile = None,
    new_version: NewVersion = False,
) -> None:
    """Say how a query would be answered, what it would cost and how far off it would be; spends nothing."""
    with open_session(
        source,
        tables=tables or (),
        public=public or (),
        privacy_unit=privacy_unit,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        mu=mu,
        ledger=ledger,
        new_version=new_version,
    ) as session:
        typer.echo(session.explain(query_text(text)))


def _account(session: Session, release: TableRelease, *, kept: bool) -> str:
    cost = f"({release.epsilon:g}, {release.delta:g})-DP"
    paid = f"cost nothing: the answer was paid for before, at {cost}" if release.replayed else f"cost {cost}"
    forgotten = "" if kept else "; no --ledger: this budget ends here"
    return f"{paid}; left {session.ledger.remaining(release.delta)}{forgotten}"
