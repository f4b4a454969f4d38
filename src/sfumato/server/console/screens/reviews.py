"""Review: the queue, one release with what changed since the last, the checklist, and the signature."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.ledger import Approval, Entry, Review
from sfumato.queries.release.table import TableRelease
from sfumato.server.console.access.permissions import Action
from sfumato.server.console.pages.answer import Answer, Page, Redirect
from sfumato.server.console.pages.screen import Screen
from sfumato.server.console.pages.visit import Visit
from sfumato.server.console.screens.releases import missing, release_document

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["CHECKLIST", "SCREENS"]

CHECKLIST: Final = (
    ("purpose", "The question serves the purpose that it states, and its text may be published."),
    ("groups", "The groups are public, or a threshold hid the small ones."),
    ("bounds", "The bounds and limits come from public knowledge, not from a look at the rows."),
    ("numbers", "The intervals are narrow enough for what the numbers are for."),
    ("release", "I read the page of the release as it will be published."),
)
"""What a reviewer confirms before signing: the name that the signed comment carries, and the words."""

_WAITING: Final = ("requested", "approved")
_SIGNATURE: Final = re.compile(r"[0-9a-fA-F]{128}")


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
    before = _published_before(console, review)
    facts = {
        "review": review,
        "entry": entry,
        "rows": _compared(console, entry, before),
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
    for name, words in CHECKLIST:
        if not visit.text(name):
            _check.refuse_state("the checklist", "be confirmed line by line", f"not: {words}", "or return it")
    confirmed = f"confirmed: {', '.join(name for name, _ in CHECKLIST)}"
    comment = "\n".join(filter(None, (visit.text("comment"), confirmed)))
    approval = console.ledger.reviews.approval(found[0].number, by=visit.identity.name, comment=comment)
    facts = {"review": found[0], "approval": approval, "statement": approval.to_json()}
    return Page(template="statement.html", title=f"Sign release {approval.number}", facts=facts)


def _approve(console: Console, visit: Visit) -> Answer:
    """Take the signature: the ledger checks it against the registered key of who is signed in."""
    approval = Approval.from_json(visit.line("statement", "begin again from the review"))
    if approval.by != visit.identity.name or approval.number != visit.number():
        found = f"it is one of release {approval.number} by {approval.by!r}"
        _check.refuse_state("statement", "be yours, about this release", found, "begin again from the review")
    signature = visit.line("signature", "'sfumato review sign' prints it")
    if not _SIGNATURE.fullmatch(signature):
        _check.refuse("signature", "be 128 hexadecimal digits", signature, "'sfumato review sign' prints it")
    console.ledger.reviews.approve(approval, bytes.fromhex(signature))
    return Redirect(path=f"/review/{approval.number}")


def _return(console: Console, visit: Visit) -> Answer:
    """Return a release to who asked."""
    return _step(console, visit, "return")


def _publish(console: Console, visit: Visit) -> Answer:
    """Publish an approved release."""
    return _step(console, visit, "publish")


def _withdraw(console: Console, visit: Visit) -> Answer:
    """Withdraw a published release."""
    return _step(console, visit, "withdraw")


def _step(console: Console, visit: Visit, step: str) -> Answer:
    found = _found(console, visit)
    if found is None:
        return missing("release in review")
    number, by, reviews = found[0].number, visit.identity.name, console.ledger.reviews
    if step == "publish":
        reviews.publish(number, by=by)
    elif step == "withdraw":
        reviews.withdraw(number, by=by, comment=visit.line("comment", "say why; everybody reads it"))
    else:
        reviews.send_back(number, by=by, comment=visit.line("comment", "say what is to be changed"))
    return Redirect(path=f"/review/{number}")


def _found(console: Console, visit: Visit) -> tuple[Review, Entry] | None:
    """Return the review that the path names; None where nobody asked for one."""
    number = visit.number()
    try:
        review = None if number is None else console.ledger.reviews.of(number)
    except ParameterError:
        review = None
    if review is None or not review.steps:
        return None
    return review, console.ledger.entry(review.number)


def _published_before(console: Console, review: Review) -> Entry | None:
    """Return the last published release for the same purpose, else of the same analyst; None without one."""
    purpose = console.ledger.entry(review.number).purpose
    published = [
        (one, console.ledger.entry(one.number))
        for one in console.ledger.reviews.all("published")
        if one.number != review.number
    ]
    same = [entry for _, entry in published if purpose and entry.purpose == purpose]
    own = [entry for one, entry in published if review.asked_by and one.asked_by == review.asked_by]
    return max(same or own, key=lambda entry: entry.sequence, default=None)


def _compared(console: Console, entry: Entry, before: Entry | None) -> list[dict[str, object]]:
    """Return line by line what a release is, what the one before was, and whether that changed."""
    now = _facts(console, entry)
    then = {} if before is None else _facts(console, before)
    return [
        {
            "name": name,
            "now": value,
            "then": then.get(name, ""),
            "changed": bool(then) and then.get(name) != value,
        }
        for name, value in now.items()
    ]


def _facts(console: Console, entry: Entry) -> dict[str, str]:
    """Return what a reviewer needs of a release: nothing in it depends on rows but through the release."""
    facts = {
        "Asked by": entry.analyst or "the curator",
        "Purpose": entry.purpose or "none stated",
        "Question": entry.description,
        "Epsilon": f"{entry.epsilon:g} at delta {entry.delta:g}",
        "Privacy loss": str(entry.loss),
        "Version of the data": str(entry.version),
        "Noise": "simulated: it protects nobody" if entry.simulated else "real",
    }
    stored = console.ledger.release(entry.sequence)
    if isinstance(stored, TableRelease):
        columns = stored.to_arrow()
        facts["Columns"] = ", ".join(columns.column_names)
        facts["Groups"] = str(columns.num_rows)
        threshold = stored.record.threshold
        facts["Threshold"] = (
            "none: the groups are public"
            if threshold is None
            else f"groups with a noisy count below {threshold.units} are hidden"
        )
    return facts


SCREENS: Final = (
    Screen(path="/review", action=Action.VIEW_REVIEWS, show=_queue),
    Screen(path="/review/{number}", action=Action.VIEW_REVIEWS, show=_show),
    Screen(path="/review/{number}/page", action=Action.VIEW_REVIEWS, show=_page),
    Screen(path="/review/{number}/statement", action=Action.REVIEW, show=_statement, method="POST"),
    Screen(path="/review/{number}/approve", action=Action.REVIEW, show=_approve, method="POST"),
    Screen(path="/review/{number}/return", action=Action.REVIEW, show=_return, method="POST"),
    Screen(path="/review/{number}/publish", action=Action.PUBLISH, show=_publish, method="POST"),
    Screen(path="/review/{number}/withdraw", action=Action.PUBLISH, show=_withdraw, method="POST"),
)
