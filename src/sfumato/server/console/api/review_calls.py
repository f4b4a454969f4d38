"""Reviews: the queue, one release in it, the statement to sign, and each step that can be taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.ledger import Entry, Review
from sfumato.server.console.access.permissions import Action
from sfumato.server.console.api.operation import JSON, Call, Operation, Outcome, number_in
from sfumato.server.console.api.problems import Problem
from sfumato.server.console.api.schemas import TEXT, obj, reference
from sfumato.server.console.services.reviewing import (
    CHECKLIST,
    Step,
    approve_release,
    compared_releases,
    confirmed_approval,
    found_review,
    published_before,
    take_step,
)

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["OPERATIONS"]

_HTML: Final = "text/html"
_REVIEW: Final = {200: {JSON: reference("Review")}}


def _row(review: Review, entry: Entry) -> dict[str, Any]:
    return {
        "number": review.number,
        "asked_by": review.asked_by,
        "state": review.state,
        "purpose": entry.purpose,
        "steps": review.steps,
    }


def _list(console: Console, _: Call) -> Outcome:
    ledger = console.ledger
    rows = [_row(review, ledger.entry(review.number)) for review in ledger.reviews.all()]
    return Outcome(content={"reviews": rows})


def _found(console: Console, call: Call) -> tuple[Review, Entry]:
    found = found_review(console, number_in(call))
    if found is None:
        raise Problem(status=404, detail="there is no such release in review")
    return found


def _show(console: Console, call: Call) -> Outcome:
    review, entry = _found(console, call)
    before = published_before(console, review)
    return Outcome(
        content={
            **_row(review, entry),
            "compared": compared_releases(console, entry, before),
            "before": None if before is None else before.sequence,
            "checklist": [{"name": name, "words": words} for name, words in CHECKLIST],
        }
    )


def _page(console: Console, call: Call) -> Outcome:
    try:
        return Outcome(content=console.release_pages.page(_found(console, call)[0].number, "en"))
    except ParameterError:  # of a training run, say, there are no pages
        raise Problem(status=404, detail="there is no page of this release") from None


def _statement(console: Console, call: Call) -> Outcome:
    approval = confirmed_approval(
        console,
        _found(console, call)[0].number,
        by=call.name,
        confirmed=call.body["confirmed"],
        comment=call.body.get("comment", ""),
    )
    return Outcome(content={"statement": approval.to_json()})


def _approve(console: Console, call: Call) -> Outcome:
    number = _found(console, call)[0].number
    stated = {name: call.body[name] for name in ("statement", "signature")}
    approve_release(console, number, by=call.name, **stated)
    return _show(console, call)


def _return(console: Console, call: Call) -> Outcome:
    return _take(console, call, "return")


def _publish(console: Console, call: Call) -> Outcome:
    return _take(console, call, "publish")


def _withdraw(console: Console, call: Call) -> Outcome:
    return _take(console, call, "withdraw")


def _take(console: Console, call: Call, step: Step) -> Outcome:
    number, comment = _found(console, call)[0].number, call.body.get("comment", "").strip()
    if step != "publish" and not comment:
        _check.refuse_state("comment", "be filled in", "it is empty", "say why")
    take_step(console, number, step, by=call.name, comment=comment)
    return _show(console, call)


_COMMENT: Final = obj({"comment": TEXT})

OPERATIONS: Final = (
    Operation(
        name="listReviews",
        method="GET",
        path="/reviews",
        action=Action.VIEW_REVIEWS,
        summary="List all releases for which a review was asked.",
        run=_list,
        answers={200: {JSON: reference("Reviews")}},
    ),
    Operation(
        name="showReview",
        method="GET",
        path="/reviews/{number}",
        action=Action.VIEW_REVIEWS,
        summary="Return what is known of a release in review, and what changed since the last one.",
        run=_show,
        answers=_REVIEW,
    ),
    Operation(
        name="showReviewedPage",
        method="GET",
        path="/reviews/{number}/page",
        action=Action.VIEW_REVIEWS,
        summary="Return the page of a release in review as it would be published.",
        run=_page,
        answers={200: {_HTML: None}},
    ),
    Operation(
        name="makeStatement",
        method="POST",
        path="/reviews/{number}/statement",
        action=Action.REVIEW,
        summary="Return what a reviewer signs, once each line of the checklist is confirmed by its name.",
        run=_statement,
        body=obj({"confirmed": {"type": "array", "items": TEXT}}, {"comment": TEXT}),
        answers={200: {JSON: reference("Statement")}},
        problems=(409,),
    ),
    Operation(
        name="approveRelease",
        method="POST",
        path="/reviews/{number}/approve",
        action=Action.REVIEW,
        summary="Take a reviewer's signature of the statement, by the key that the ledger knows as theirs.",
        run=_approve,
        body=obj({"statement": TEXT, "signature": TEXT}),
        answers=_REVIEW,
        problems=(409,),
    ),
    Operation(
        name="returnRelease",
        method="POST",
        path="/reviews/{number}/return",
        action=Action.REVIEW,
        summary="Return a release to who asked, with what is to be changed.",
        run=_return,
        body=_COMMENT,
        answers=_REVIEW,
        problems=(409,),
    ),
    Operation(
        name="publishRelease",
        method="POST",
        path="/reviews/{number}/publish",
        action=Action.PUBLISH,
        summary="Publish an approved release.",
        run=_publish,
        body=obj({}),
        answers=_REVIEW,
        problems=(409,),
    ),
    Operation(
        name="withdrawRelease",
        method="POST",
        path="/reviews/{number}/withdraw",
        action=Action.PUBLISH,
        summary="Withdraw a published release, with a reason that everybody reads.",
        run=_withdraw,
        body=_COMMENT,
        answers=_REVIEW,
        problems=(409,),
    ),
)
