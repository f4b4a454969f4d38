"""History: one's own questions, how far each is, its answer again for nothing, and the way to a review."""

from __future__ import annotations

import io
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import csv

from sfumato.server.console.access.permissions import Action
from sfumato.server.console.asking.job import JobView
from sfumato.server.console.asking.question import Question
from sfumato.server.console.pages.answer import Answer, Document, Page, Redirect
from sfumato.server.console.pages.rows import shown_rows
from sfumato.server.console.pages.screen import Screen
from sfumato.server.console.pages.visit import Visit
from sfumato.server.console.screens.releases import missing
from sfumato.server.console.services.asking_of import asking_of
from sfumato.server.console.services.reviewing import request_reviews

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["SCREENS"]

_ROWS: Final = 25
_SHOWN: Final = 1000
"""Rows of an answer on its page; the files have all."""


def _list(console: Console, visit: Visit) -> Answer:
    """Show an analyst's questions, the newest first."""
    page = visit.page()
    jobs = asking_of(console).history(visit.identity.name, limit=_ROWS + 1, offset=(page - 1) * _ROWS)
    facts = {"rows": [_row(job) for job in jobs[:_ROWS]], "page": page, "last": page + (len(jobs) > _ROWS)}
    return Page(template="history.html", title="History", facts=facts)


def _show(console: Console, visit: Visit) -> Answer:
    """Show one question and its answer, once it is there."""
    service, name = asking_of(console), visit.identity.name
    job = service.job(name, visit.path["job"])
    facts: dict[str, Any] = {**_row(job), "table": None, "reviews": [], "waits": job.next_look is not None}
    if job.state == "done":
        answer = service.answer(name, job.id)
        table = answer.to_arrow()
        facts["table"] = {
            "names": table.column_names,
            "rows": shown_rows(table, _SHOWN),
            "count": table.num_rows,
            "facts": answer.facts,
        }
        facts["reviews"] = [console.ledger.reviews.of(number) for number in job.charges]
    return Page(template="job.html", title="Your question", facts=facts)


def _until(console: Console, visit: Visit) -> float:
    """Return the seconds until a question's state can change, if that is what is waited for."""
    if "wait" not in visit.query:
        return 0.0
    job = asking_of(console).job(visit.identity.name, visit.path["job"])
    return job.until_next_look(time.time()) or 0.0


def _row(job: JobView) -> dict[str, Any]:
    return {
        "job": job,
        "question": Question.from_json(job.question),
        "asked": datetime.fromtimestamp(job.submitted, UTC),
        "deadline": None if job.deadline is None else datetime.fromtimestamp(job.deadline, UTC),
    }


def _cancel(console: Console, visit: Visit) -> Answer:
    """Cancel a question; its charge stays."""
    job = asking_of(console).cancel(visit.identity.name, visit.path["job"])
    return Redirect(path=f"/history/{job.id}")


def _request_review(console: Console, visit: Visit) -> Answer:
    """Ask that the releases of an answer be reviewed, so that they can be published."""
    job = asking_of(console).job(visit.identity.name, visit.path["job"])
    if job.state != "done":
        return missing("answer yet")
    request_reviews(console, job.charges, by=visit.identity.name, comment=visit.text("comment"))
    return Redirect(path=f"/history/{job.id}")


def _file(console: Console, visit: Visit) -> Answer:
    """Give an answer as a file: CSV, or a stream of Arrow."""
    service, name, form = asking_of(console), visit.identity.name, visit.path["form"]
    job = service.job(name, visit.path["job"])
    if job.state != "done" or form not in {"csv", "arrow"}:
        return missing("file")
    if form == "arrow":
        content = service.answer(name, job.id).table
        return Document(
            content=content, media_type="application/vnd.apache.arrow.stream", file_name=f"{job.id}.arrows"
        )
    return Document(
        content=_as_csv(service.table(name, job.id)), media_type="text/csv", file_name=f"{job.id}.csv"
    )


def _as_csv(table: pa.Table) -> bytes:
    held = io.BytesIO()
    csv.write_csv(table, held)
    return held.getvalue()


SCREENS: Final = (
    Screen(path="/history", action=Action.VIEW_OWN, show=_list, needs_data=True),
    Screen(path="/history/{job}", action=Action.VIEW_OWN, show=_show, wait=_until, needs_data=True),
    Screen(path="/history/{job}/{form}", action=Action.VIEW_OWN, show=_file, needs_data=True),
    Screen(
        path="/history/{job}/cancel", action=Action.CANCEL_JOB, show=_cancel, method="POST", needs_data=True
    ),
    Screen(
        path="/history/{job}/review",
        action=Action.REQUEST_REVIEW,
        show=_request_review,
        method="POST",
        needs_data=True,
    ),
)
