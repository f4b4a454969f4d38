"""A release on its way to the public: found, compared, confirmed, signed, returned, published, withdrawn."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.ledger import Approval, Entry, Review
from sfumato.queries.release.table import TableRelease

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = [
    "CHECKLIST",
    "Step",
    "approve_release",
    "compared_releases",
    "confirmed_approval",
    "found_review",
    "published_before",
    "request_reviews",
    "take_step",
]

CHECKLIST: Final = (
    ("purpose", "The question serves the purpose that it states, and its text may be published."),
    ("groups", "The groups are public, or a threshold hid the small ones."),
    ("bounds", "The bounds and limits come from public knowledge, not from a look at the rows."),
    ("numbers", "The intervals are narrow enough for what the numbers are for."),
    ("release", "I read the page of the release as it will be published."),
)
"""What a reviewer confirms before signing: the name that the signed comment carries, and the words."""

_CONFIRMED: Final = f"confirmed: {', '.join(name for name, _ in CHECKLIST)}"
"""The last line of what a reviewer signs here."""

Step: TypeAlias = Literal["return", "publish", "withdraw"]

_SIGNATURE: Final = re.compile(r"[0-9a-fA-F]{128}")
_ASKED_ANEW: Final = ("none", "returned", "withdrawn")


def found_review(console: Console, number: int | None) -> tuple[Review, Entry] | None:
    """Return a review with its charge; None where nobody asked for one.

    Parameters
    ----------
    console : Console
    number : int or None
        Of the charge.
    """
    try:
        review = None if number is None else console.ledger.reviews.of(number)
    except ParameterError:
        review = None
    if review is None or not review.steps:
        return None
    return review, console.ledger.entry(review.number)


def request_reviews(console: Console, numbers: Collection[int], *, by: str, comment: str) -> None:
    """Ask that releases be reviewed, those of them that are not under review already.

    Parameters
    ----------
    console : Console
    numbers : collection of int
        Of the charges of one answer.
    by, comment : str
    """
    reviews = console.ledger.reviews
    for number in numbers:
        if reviews.of(number).state in _ASKED_ANEW:
            reviews.request(number, by=by, comment=comment)


def confirmed_approval(
    console: Console, number: int, *, by: str, confirmed: Collection[str], comment: str
) -> Approval:
    """Return what a reviewer signs, once every line of the checklist is confirmed.

    Parameters
    ----------
    console : Console
    number : int
    by : str
    confirmed : collection of str
        Names of the lines of `CHECKLIST`.
    comment : str

    Raises
    ------
    ParameterError
        If a line is not confirmed.
    """
    for name, words in CHECKLIST:
        if name not in confirmed:
            _check.refuse_state("the checklist", "be confirmed line by line", f"not: {words}", "or return it")
    said = "\n".join(filter(None, (comment, _CONFIRMED)))
    return console.ledger.reviews.approval(number, by=by, comment=said)


def approve_release(console: Console, number: int | None, *, by: str, statement: str, signature: str) -> int:
    """Take a signature, which the ledger checks against the signer's registered key; return the number.

    Parameters
    ----------
    console : Console
    number : int or None
        Which release is meant.
    by : str
        Who is signed in.
    statement : str
        What was signed.
    signature : str
        In hexadecimal.
    """
    approval = Approval.from_json(statement)
    if approval.by != by or approval.number != number:
        found = f"it is one of release {approval.number} by {approval.by!r}"
        _check.refuse_state("statement", "be yours, about this release", found, "begin again from the review")
    if approval.comment.rpartition("\n")[2] != _CONFIRMED:
        found = "it does not confirm the checklist"
        _check.refuse_state("statement", "be one that was shown", found, "begin again from the review")
    if not _SIGNATURE.fullmatch(signature):
        _check.refuse("signature", "be 128 hexadecimal digits", signature, "'sfumato review sign' prints it")
    console.ledger.reviews.approve(approval, bytes.fromhex(signature))
    return approval.number


def take_step(console: Console, number: int, step: Step, *, by: str, comment: str = "") -> None:
    """Return a release to who asked, publish an approved one, or withdraw a published one.

    Parameters
    ----------
    console : Console
    number : int
    step : str
    by, comment : str
    """
    reviews = console.ledger.reviews
    if step == "publish":
        reviews.publish(number, by=by)
    elif step == "withdraw":
        reviews.withdraw(number, by=by, comment=comment)
    else:
        reviews.send_back(number, by=by, comment=comment)


def published_before(console: Console, review: Review) -> Entry | None:
    """Return the last published release for the same purpose, else of the same analyst; None without one.

    Parameters
    ----------
    console : Console
    review : Review
    """
    purpose = console.ledger.entry(review.number).purpose
    published = [
        (one, console.ledger.entry(one.number))
        for one in console.ledger.reviews.all("published")
        if one.number != review.number
    ]
    same = [entry for _, entry in published if purpose and entry.purpose == purpose]
    own = [entry for one, entry in published if review.asked_by and one.asked_by == review.asked_by]
    return max(same or own, key=lambda entry: entry.sequence, default=None)


def compared_releases(console: Console, entry: Entry, before: Entry | None) -> list[Mapping[str, object]]:
    """Return line by line what a release is, what the one before was, and whether that changed.

    Parameters
    ----------
    console : Console
    entry, before : Entry
    """
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
