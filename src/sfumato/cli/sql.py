"""``sfumato sql`` and ``sfumato explain``: one query, answered or only described."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from sfumato.cli.guarding import check_free, file_of
from sfumato.cli.opening import named_sources, open_session, query_text
from sfumato.cli.writing import Format, check_output, write
from sfumato.session.session import Session

if TYPE_CHECKING:
    from sfumato.queries.release.table import TableRelease

__all__ = ["answer", "explain"]

Text: TypeAlias = Annotated[str, typer.Argument(metavar="SQL", help="The query; '-' reads standard input.")]
Style: TypeAlias = Annotated[Format, typer.Option("--format", help="How the answer is written.")]
Output: TypeAlias = Annotated[Path | None, typer.Option("--output", help="File for the answer.")]
NoIntervals: TypeAlias = Annotated[bool, typer.Option("--no-intervals", help="Leave the intervals out.")]


def _in_session(command: Callable[..., None]) -> Callable[..., None]:
    """Put the arguments of `open_session` before the command's own, and hand it the session they open."""
    own = inspect.signature(command, eval_str=True).parameters
    opening = inspect.signature(open_session, eval_str=True).parameters

    @functools.wraps(command)
    def run(**given: Any) -> None:
        words = {name: given.pop(name) for name in opening}
        if given.get("output") is not None:
            paths = named_sources(words["source"], words["tables"], words["public"])
            check_free(given["output"], sources=paths, ledger=file_of(words["ledger"]))
        with open_session(**words) as session:
            command(session, **given)

    merged = [*opening.values(), *(own[name] for name in own if name != "session")]
    merged.sort(key=lambda parameter: parameter.kind)
    run.__signature__ = inspect.Signature(merged)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in merged}
    return run


@_in_session
def answer(
    session: Session,
    text: Text,
    *,
    style: Style = Format.TABLE,
    output: Output = None,
    no_intervals: NoIntervals = False,
) -> None:
    """Answer a query with differential privacy, and charge the ledger for it."""
    check_output(style, output)
    release = session.sql(query_text(text))
    table = release.to_arrow(intervals=not no_intervals)
    write(table, style, output, again=_again(session))
    typer.echo(_account(session, release), err=True)


@_in_session
def explain(session: Session, text: Text) -> None:
    """Say how a query would be answered, what it would cost and how far off it would be; spends nothing."""
    typer.echo(session.explain(query_text(text)))


def _again(session: Session) -> str:
    if not session.ledger.durable:
        return "the answer was charged and is lost with this command's budget; pass --ledger to keep both"
    return "the answer is charged and stored: asking again with this --ledger shows it and costs nothing"


def _account(session: Session, release: TableRelease) -> str:
    cost = f"({release.epsilon:g}, {release.delta:g})-DP"
    paid = f"cost nothing: the answer was paid for before, at {cost}" if release.replayed else f"cost {cost}"
    forgotten = "; no --ledger: this budget ends here" if not session.ledger.durable else ""
    return f"{paid}; left {session.account.remaining(release.delta)}{forgotten}"
