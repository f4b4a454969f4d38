"""Ask: a question, what it costs and how wrong its answer will be, and only then the charge."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sfumato import _check
from sfumato.errors import ParameterError, QueryError
from sfumato.server.console.access.permissions import Action
from sfumato.server.console.asking.proposal import Proposal, Wanted
from sfumato.server.console.asking.question import AGGREGATES, Question, QuestionForm
from sfumato.server.console.asking.service import AskingService
from sfumato.server.console.pages.answer import Answer, Page, Redirect
from sfumato.server.console.pages.screen import Screen
from sfumato.server.console.pages.visit import Visit, read_number
from sfumato.server.console.services.asking_of import asking_of

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["SCREENS", "question_of"]

_BEGIN: Final = "begin again from the question"
_NUMBER: Final = "write a number such as 0.25, or leave it empty"


def _form(console: Console, visit: Visit) -> Answer:
    """Show the form, empty or with an earlier question of one's own."""
    filled = dict.fromkeys(("sql", "epsilon", "purpose", "period"), "")
    earlier = visit.query.get("again", "")
    if earlier:
        question = Question.from_json(asking_of(console).job(visit.identity.name, earlier).question)
        epsilon = "" if question.epsilon is None else repr(question.epsilon)
        filled = {
            "sql": question.sql,
            "epsilon": epsilon,
            "purpose": question.purpose,
            "period": question.period,
        }
    facts = {"filled": filled, "aggregates": AGGREGATES, "renewal": console.ledger.renewal}
    return Page(template="ask.html", title="Ask", facts=facts)


def _price(console: Console, visit: Visit) -> Answer:
    """Show what a question costs; nothing is charged."""
    error = visit.amount("error", "write the width that an interval may have, or leave it empty")
    wanted = None
    if error is not None:
        wanted = Wanted(error=error, units=visit.amount("units", _NUMBER))
    return _priced(asking_of(console), visit, question_of(visit), wanted)


def _price_again(console: Console, visit: Visit) -> Answer:
    """Show what a question costs by now that was not charged."""
    question = Question.from_json(visit.line("question", _BEGIN))
    return _priced(asking_of(console), visit, question, None)


def _priced(service: AskingService, visit: Visit, question: Question, wanted: Wanted | None) -> Page:
    proposal = service.propose(visit.identity.name, question, wanted=wanted)
    facts = {**_facts(proposal), "smaller": _fits_smaller(service, proposal)}
    return Page(template="proposal.html", title="What it costs", facts=facts)


def _fits_smaller(service: AskingService, proposal: Proposal) -> bool:
    """Whether a refused question fits with the epsilon that is offered, without a change of its text."""
    if proposal.offer is None or proposal.offer.epsilon is None:
        return False
    smaller = replace(proposal.question, epsilon=proposal.offer.epsilon)
    with suppress(QueryError, ParameterError):  # stated parts of epsilon may not fit into it
        return service.propose(proposal.analyst, smaller).fits
    return False


def _facts(proposal: Proposal) -> Mapping[str, Any]:
    return {
        "proposal": proposal,
        "request": secrets.token_hex(16),
        "cost": json.dumps(dict(proposal.cost)),
        "question": proposal.question.to_json(),
        "spent": [
            (unit, cost, proposal.before[unit], proposal.after[unit])
            for unit, cost in proposal.cost.items()
            if unit in proposal.before and unit in proposal.after
        ],
    }


def _run(console: Console, visit: Visit) -> Answer:
    """Charge a question that was priced, and go to its job."""
    question = Question.from_json(visit.line("question", _BEGIN))
    at_most = _cost(visit.line("cost", _BEGIN))
    request = visit.line("request", _BEGIN)
    job = asking_of(console).submit(visit.identity.name, question, request=request, at_most=at_most)
    return Redirect(path=f"/history/{job.id}?wait=1")


def question_of(visit: Visit) -> Question:
    """Return the question of the form: its SQL, or what the fields say.

    Parameters
    ----------
    visit : Visit
    """
    sql = visit.text("sql")
    if not sql and visit.text("aggregate"):
        fields = QuestionForm(
            table=visit.line("table", "name the table"),
            aggregate=visit.text("aggregate"),
            column=visit.text("column"),
            lower=_bound(visit, "lower"),
            upper=_bound(visit, "upper"),
            group_by=visit.text("group_by"),
            groups=_whole(visit, "groups"),
            rows=_whole(visit, "rows"),
            delta=visit.amount("delta", "write a number such as 1e-9, or leave it empty"),
        )
        sql = fields.sql
    if not sql:
        _check.refuse_state("the question", "be written", "it is empty", "write SQL, or fill the fields in")
    return Question(
        sql=sql,
        epsilon=visit.amount("epsilon", _NUMBER),
        purpose=visit.text("purpose"),
        period=visit.text("period"),
    )


def _bound(visit: Visit, name: str) -> float | None:
    """Return a bound, which may be negative."""
    return read_number(name, visit.text(name), _NUMBER, minimum=-math.inf)


def _whole(visit: Visit, name: str) -> int | None:
    text = visit.text(name)
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        _check.refuse(name, "be a whole number of at least 1", text, "or leave it empty")
    return int(text)


def _cost(text: str) -> Mapping[str, float]:
    """Return the cost that a page showed."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(type(value) in (int, float) for value in found.values()):
        _check.refuse_state("cost", "be what the page showed", "it is not", _BEGIN)
    return found


SCREENS: Final = (
    Screen(path="/ask", action=Action.ASK, show=_form, needs_data=True),
    Screen(path="/ask/price", action=Action.ASK, show=_price, method="POST", needs_data=True, again=_form),
    Screen(path="/ask/run", action=Action.ASK, show=_run, method="POST", needs_data=True, again=_price_again),
)
