"""Questions: their price, their charge, and their answer on made-up rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sfumato.server.console.access.permissions import Action
from sfumato.server.console.api.job_calls import job_outcome
from sfumato.server.console.api.operation import ARROW, JSON, Call, Operation, Outcome
from sfumato.server.console.api.plain_values import rows_of
from sfumato.server.console.api.problems import Problem
from sfumato.server.console.api.schemas import COUNT, NUMBER, NUMBERS, QUESTION, TEXT, obj, reference
from sfumato.server.console.api.table_bytes import arrow_stream
from sfumato.server.console.asking.job import JobView
from sfumato.server.console.asking.proposal import Wanted
from sfumato.server.console.asking.question import Question
from sfumato.server.console.services.asking_of import asking_of

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["OPERATIONS"]

_WANTED: Final = obj(
    {"error": {"type": ["number", "object"], "additionalProperties": NUMBER}}, {"units": NUMBER}
)


def _question(call: Call) -> Question:
    """Return the question of a body."""
    stated = {name: call.body[name] for name in ("sql", *QUESTION) if call.body.get(name) is not None}
    return Question(**stated)


def _price(console: Console, call: Call) -> Outcome:
    stated: Mapping[str, Any] | None = call.body.get("wanted")
    wanted = None if stated is None else Wanted(error=stated["error"], units=stated.get("units"))
    question = _question(call)
    return Outcome(content=asking_of(console).propose(call.name, question, wanted=wanted).to_json())


def _submit(console: Console, call: Call) -> Outcome:
    service, question = asking_of(console), _question(call)
    job = service.submit(call.name, question, request=call.body["request"], at_most=call.body.get("at_most"))
    if job.state == "refused":
        raise _refusal(job)
    return job_outcome(job, status=200 if job.next_look is None else 202)


def _refusal(job: JobView) -> Problem:
    """Return why a question was not charged, with what was left and what it needed when it was asked."""
    offer = job.proposal["offer"]
    if offer is None:  # something else was charged in between
        return Problem(status=409, detail=job.message, error="LedgerError", more={"job": job.id})
    left = dict(job.proposal["before"])
    if offer["epsilon"] is not None:
        left |= {"answerable_epsilon": offer["epsilon"], "answerable_delta": offer["delta"]}
    more = {"remaining": left, "requested": job.proposal["cost"], "job": job.id}
    return Problem(status=409, detail=job.message, error="BudgetExceeded", more=more)


def _dry_run(console: Console, call: Call) -> Outcome:
    found = asking_of(console).dry_run(
        call.name, replace(_question(call), purpose=""), seed=call.body.get("seed")
    )
    facts = {"notice": found.notice, "explanation": found.explanation, "seed": found.seed, "simulated": True}
    if call.media == ARROW:
        return Outcome(content=arrow_stream(found.table, facts))
    return Outcome(content={**rows_of(found.table), **facts})


OPERATIONS: Final = (
    Operation(
        name="priceQuestion",
        method="POST",
        path="/questions/price",
        action=Action.ASK,
        summary="Say what a question costs and how wrong its answer will be; nothing is charged.",
        run=_price,
        body=obj({"sql": TEXT}, {**QUESTION, "wanted": _WANTED}),
        answers={200: {JSON: reference("Proposal")}},
        problems=(409,),
        needs_data=True,
    ),
    Operation(
        name="submitQuestion",
        method="POST",
        path="/questions",
        action=Action.ASK,
        summary="Charge a question and have it answered; the same request id again is the same job.",
        run=_submit,
        body=obj({"sql": TEXT, "request": TEXT}, {**QUESTION, "at_most": NUMBERS}),
        answers={202: {JSON: reference("Job")}, 200: {JSON: reference("Job")}},
        problems=(409,),
        needs_data=True,
    ),
    Operation(
        name="dryRun",
        method="POST",
        path="/dry-runs",
        action=Action.DRY_RUN,
        summary="Answer a question on made-up rows; nothing is charged and no private row is read.",
        run=_dry_run,
        body=obj({"sql": TEXT}, {**QUESTION, "seed": COUNT}),
        answers={200: {JSON: reference("DryRun"), ARROW: None}},
        problems=(409,),
        needs_data=True,
    ),
)
