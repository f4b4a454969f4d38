"""Review: the queue, one release with what changed since the last, the checklist, and the signature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sfumato.ledger import Entry, Review
from sfumato.server.console.access.permissions import Action
from sfumato.server.console.pages.answer import Answer, Page, Redirect
from sfumato.server.console.pages.screen import Screen
from sfumato.server.console.pages.visit import Visit
from sfumato.server.console.screens.releases import missing, release_document
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

__all__ = ["SCREENS"]

_BEGIN: Final = "begin again from the review"
_WAITING: Final = ("requested", "approved")
_REMEDIES: Final = {"return": "say what is to be changed", "withdraw": "say why; everybody reads it"}


def _queue(console: Console, _: Visit) -> Answer:
    """Show what waits for a decision, the oldest first, and what was decided."""
    waiting: list[dict[str, object]] = []
    decided: list[dict[str, object]] = []
    for review in console.ledger.reviews.all():
        row: dict[str, object] = {"review": review, "entry": console.ledger.entry(review.number)}
        (waiting if review.state in _WAITING else decided).append(row)
    decided.reverse()
    return Page(template="review_queue.html", title="Review", facts={"waiting": waiting, "decided": decided})


def _show(console: Console, visit: Visit) -> Answer:
    """Show one release in review: what is known of it, what changed, what was said, what can be done."""
    found = _found(console, visit)
    if found is None:
        return missing("release in review")
    review, entry = found
    before = published_before(console, review)
    facts = {
        "review": review,
        "entry": entry,
        "rows": compared_releases(console, entry, before),
        "before": before,
        "checklist": CHECKLIST,
    }
    return Page(template="review.html", title=f"Review of release {review.number}", facts=facts)


def _page(console: Console, visit: Visit) -> Answer:
    """Show the page of a release in review as it would be published."""
    found = _found(console, visit)
    return (
        missing("release in review") if found is None else release_document(console, found[0].number, visit)
    )


def _statement(console: Console, visit: Visit) -> Answer:
    """Show what the reviewer signs, once every line of the checklist is confirmed."""
    found = _found(console, visit)
    if found is None:
        return missing("release in review")
    approval = confirmed_approval(
        console,
        found[0].number,
        by=visit.identity.name,
        confirmed=[name for name, _ in CHECKLIST if visit.text(name)],
        comment=visit.text("comment"),
    )
    return _to_sign(found[0], approval.to_json())


def _to_sign(review: Review, statement: str) -> Page:
    facts = {"review": review, "statement": statement}
    return Page(template="statement.html", title=f"Sign release {review.number}", facts=facts)


def _sign_again(console: Console, visit: Visit) -> Answer:
    """Show what was to be signed, where the signature was refused."""
    found, statement = _found(console, visit), visit.line("statement", _BEGIN)
    return missing("release in review") if found is None else _to_sign(found[0], statement)


def _approve(console: Console, visit: Visit) -> Answer:
    """Take the signature: the ledger checks it against the registered key of who is signed in."""
    number = approve_release(
        console,
        visit.number(),
        by=visit.identity.name,
        statement=visit.line("statement", _BEGIN),
        signature=visit.line("signature", "'sfumato review sign' prints it"),
    )
    return Redirect(path=f"/review/{number}")


def _return(console: Console, visit: Visit) -> Answer:
    """Return a release to who asked."""
    return _step(console, visit, "return")


def _publish(console: Console, visit: Visit) -> Answer:
    """Publish an approved release."""
    return _step(console, visit, "publish")


def _withdraw(console: Console, visit: Visit) -> Answer:
    """Withdraw a published release."""
    return _step(console, visit, "withdraw")


def _step(console: Console, visit: Visit, step: Step) -> Answer:
    found = _found(console, visit)
    if found is None:
        return missing("release in review")
    comment = visit.line("comment", _REMEDIES[step]) if step in _REMEDIES else ""
    take_step(console, found[0].number, step, by=visit.identity.name, comment=comment)
    return Redirect(path=f"/review/{found[0].number}")


def _found(console: Console, visit: Visit) -> tuple[Review, Entry] | None:
    """Return the review that the path names; None where nobody asked for one."""
    return found_review(console, visit.number())


SCREENS: Final = (
    Screen(path="/review", action=Action.VIEW_REVIEWS, show=_queue),
    Screen(path="/review/{number}", action=Action.VIEW_REVIEWS, show=_show),
    Screen(path="/review/{number}/page", action=Action.VIEW_REVIEWS, show=_page),
    Screen(
        path="/review/{number}/statement", action=Action.REVIEW, show=_statement, method="POST", again=_show
    ),
    Screen(
        path="/review/{number}/approve", action=Action.REVIEW, show=_approve, method="POST", again=_sign_again
    ),
    Screen(path="/review/{number}/return", action=Action.REVIEW, show=_return, method="POST", again=_show),
    Screen(path="/review/{number}/publish", action=Action.PUBLISH, show=_publish, method="POST", again=_show),
    Screen(
        path="/review/{number}/withdraw", action=Action.PUBLISH, show=_withdraw, method="POST", again=_show
    ),
)
