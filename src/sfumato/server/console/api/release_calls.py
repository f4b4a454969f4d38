"""Published releases: the list, each as JSON, Arrow, Parquet or its page, and all in a DuckDB file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sfumato.errors import ParameterError
from sfumato.ledger import Review
from sfumato.server.console.access.permissions import Action
from sfumato.server.console.api.operation import ARROW, JSON, Call, Operation, Outcome, number_in
from sfumato.server.console.api.plain_values import rows_of
from sfumato.server.console.api.problems import Problem
from sfumato.server.console.api.schemas import reference
from sfumato.server.console.api.table_bytes import arrow_stream
from sfumato.server.console.published_tables import PublishedTable, published_table
from sfumato.server.console.services.published import public_releases, public_review

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["OPERATIONS"]

_PARQUET: Final = "application/vnd.apache.parquet"
_DUCKDB: Final = "application/vnd.duckdb"
_HTML: Final = "text/html"


def _list(console: Console, _: Call) -> Outcome:
    rows = [
        {
            "number": row["review"].number,
            "state": row["review"].state,
            "purpose": row["purpose"],
            "time": row["last"].time,
            "comment": row["last"].comment,
        }
        for row in public_releases(console)
    ]
    return Outcome(content={"releases": rows})


def _published(console: Console, call: Call) -> Review:
    review = public_review(console, number_in(call))
    if review is None:
        raise Problem(status=404, detail="there is no such release")
    if review.state == "withdrawn":
        detail = f"this release was withdrawn: {review.steps[-1].comment}"
        raise Problem(status=410, detail=detail)
    return review


def _table(console: Console, review: Review) -> PublishedTable:
    found = published_table(console.ledger, review)
    if found is None:
        raise _no_table()
    return found


def _no_table() -> Problem:
    return Problem(status=404, detail="this release is no table; its page shows what it is")


def _show(console: Console, call: Call) -> Outcome:
    review = _published(console, call)
    if call.media == _HTML:
        try:
            return Outcome(content=console.release_pages.page(review.number, "en"))
        except ParameterError:
            raise Problem(status=404, detail="there is no page of this release") from None
    if call.media == _PARQUET:
        return _parquet(console, call)
    found = _table(console, review)
    if call.media == ARROW:
        return Outcome(content=arrow_stream(found.table, found.facts))
    return Outcome(content={**rows_of(found.table), "facts": found.facts})


def _arrow(console: Console, call: Call) -> Outcome:
    found = _table(console, _published(console, call))
    return Outcome(content=arrow_stream(found.table, found.facts))


def _parquet(console: Console, call: Call) -> Outcome:
    path = console.published.parquet(_published(console, call))
    if path is None:
        raise _no_table()
    return Outcome(content=path)


def _database(console: Console, _: Call) -> Outcome:
    return Outcome(content=console.published.database())


OPERATIONS: Final = (
    Operation(
        name="listReleases",
        method="GET",
        path="/releases",
        action=Action.VIEW_RELEASE,
        summary="List what was published, the newest first; what was withdrawn stays, with its reason.",
        run=_list,
        answers={200: {JSON: reference("Releases")}},
    ),
    Operation(
        name="downloadReleases",
        method="GET",
        path="/releases.duckdb",
        action=Action.VIEW_RELEASE,
        summary="Return all published tables in one DuckDB file, with a table of what is said of each.",
        run=_database,
        answers={200: {_DUCKDB: None}},
    ),
    Operation(
        name="downloadParquet",
        method="GET",
        path="/releases/{number}.parquet",
        action=Action.VIEW_RELEASE,
        summary="Return a published table with its intervals as a file of Parquet.",
        run=_parquet,
        answers={200: {_PARQUET: None}},
        problems=(410,),
    ),
    Operation(
        name="downloadArrow",
        method="GET",
        path="/releases/{number}.arrow",
        action=Action.VIEW_RELEASE,
        summary="Return a published table with its intervals as a stream of Arrow.",
        run=_arrow,
        answers={200: {ARROW: None}},
        problems=(410,),
    ),
    Operation(
        name="showRelease",
        method="GET",
        path="/releases/{number}",
        action=Action.VIEW_RELEASE,
        summary="Return a published release: its table with intervals, or its page.",
        run=_show,
        answers={200: {JSON: reference("Release"), ARROW: None, _PARQUET: None, _HTML: None}},
        problems=(410,),
    ),
)
