"""Jobs: what became of a question, its cancellation, its answer for nothing, and the way to a review."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from sfumato.errors import ParameterError
from sfumato.server.console.access.permissions import Action
from sfumato.server.console.api.operation import ARROW, JSON, Call, Operation, Outcome
from sfumato.server.console.api.plain_values import rows_of
from sfumato.server.console.api.problems import Problem
from sfumato.server.console.api.schemas import COUNT, TEXT, WHOLE, obj, reference
from sfumato.server.console.api.table_bytes import arrow_stream
from sfumato.server.console.asking.job import JobView
from sfumato.server.console.services.asking_of import asking_of
from sfumato.server.console.services.reviewing import request_reviews

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["OPERATIONS", "job_outcome"]

_MOST: Final = 100


def _job_json(job: JobView) -> dict[str, Any]:
    question = json.loads(job.question)
    stated = {name: question[name] for name in ("sql", "params", "epsilon", "period", "purpose")}
    return {**job.to_json(), "question": stated, "retry_after": job.until_next_look(time.time())}


def job_outcome(job: JobView, *, status: int = 200) -> Outcome:
    """Return a job, with when to look again where it has not ended.

    Parameters
    ----------
    job : JobView
    status : int
    """
    document = _job_json(job)
    return Outcome(content=document, status=status, headers=_headers(job, document))


def _headers(job: JobView, document: Mapping[str, Any]) -> dict[str, str]:
    headers = {"location": f"/api/v1/jobs/{job.id}"}
    if document["retry_after"] is not None:
        headers["retry-after"] = str(math.ceil(document["retry_after"]))
    return headers


def _found(console: Console, call: Call) -> JobView:
    """Return the job of the path; that of another analyst is not there."""
    try:
        return asking_of(console).job(call.name, call.path["job"])
    except ParameterError as error:
        raise Problem(status=404, detail=str(error), error="ParameterError") from None


def _list(console: Console, call: Call) -> Outcome:
    limit, offset = min(call.query.get("limit", 25), _MOST), call.query.get("offset", 0)
    jobs = asking_of(console).history(call.name, limit=limit, offset=offset)
    return Outcome(content={"jobs": [_job_json(job) for job in jobs]})


def _show(console: Console, call: Call) -> Outcome:
    return job_outcome(_found(console, call))


def _cancel(console: Console, call: Call) -> Outcome:
    return job_outcome(asking_of(console).cancel(call.name, _found(console, call).id))


def _answer(console: Console, call: Call) -> Outcome:
    job = _done(_found(console, call))
    answer = asking_of(console).answer(call.name, job.id)
    facts = {
        **answer.facts,
        "job": job.id,
        "receipts": [_receipt(console, number) for number in job.charges],
    }
    table = answer.to_arrow()
    if call.media == ARROW:
        return Outcome(content=arrow_stream(table, facts))
    return Outcome(content={**rows_of(table), "facts": facts})


def _receipt(console: Console, number: int) -> dict[str, Any]:
    receipt = console.ledger.receipt(number)
    return {"number": number, "ledger": receipt.ledger, "digest": receipt.digest}


def _done(job: JobView) -> JobView:
    if job.state != "done":
        detail = job.message or f"the job must be done to have an answer, but it is {job.state}; look again"
        headers = _headers(job, _job_json(job))
        raise Problem(status=409, detail=detail, more={"job": job.id}, headers=headers)
    return job


def _review(console: Console, call: Call) -> Outcome:
    job = _done(_found(console, call))
    request_reviews(console, job.charges, by=call.name, comment=call.body.get("comment", ""))
    states = [(number, console.ledger.reviews.of(number).state) for number in job.charges]
    return Outcome(content={"reviews": [{"number": number, "state": state} for number, state in states]})


OPERATIONS: Final = (
    Operation(
        name="listJobs",
        method="GET",
        path="/jobs",
        action=Action.VIEW_OWN,
        summary="List one's own questions, the newest first; at most 100 at a time.",
        run=_list,
        query={"limit": WHOLE, "offset": COUNT},
        answers={200: {JSON: reference("Jobs")}},
        needs_data=True,
    ),
    Operation(
        name="showJob",
        method="GET",
        path="/jobs/{job}",
        action=Action.VIEW_OWN,
        summary="Say how far a question is, and when to look again.",
        run=_show,
        answers={200: {JSON: reference("Job")}},
        needs_data=True,
    ),
    Operation(
        name="cancelJob",
        method="DELETE",
        path="/jobs/{job}",
        action=Action.CANCEL_JOB,
        summary="Cancel a question, at a step of the grid of time; its charge stays.",
        run=_cancel,
        answers={200: {JSON: reference("Job")}},
        needs_data=True,
    ),
    Operation(
        name="showAnswer",
        method="GET",
        path="/jobs/{job}/answer",
        action=Action.VIEW_OWN,
        summary="Return the answer with its intervals, as often as wanted, for nothing.",
        run=_answer,
        answers={200: {JSON: reference("Answer"), ARROW: None}},
        problems=(409,),
        needs_data=True,
    ),
    Operation(
        name="requestReview",
        method="POST",
        path="/jobs/{job}/review",
        action=Action.REQUEST_REVIEW,
        summary="Ask that the releases of an answer be reviewed, so that they can be published.",
        run=_review,
        body=obj({}, {"comment": TEXT}),
        answers={200: {JSON: reference("Reviewed")}},
        problems=(409,),
        needs_data=True,
    ),
)
