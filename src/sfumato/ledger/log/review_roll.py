"""Where each release of a ledger is on its way to the public, and the rules of the next step.

| from | step | to | who |
| --- | --- | --- | --- |
| charged and stored, returned, withdrawn | request | requested | who asked, or a curator |
| requested | approve | approved | a reviewer who did not ask, by a signature |
| requested, approved | return | returned | a reviewer who did not ask, or a curator |
| approved | publish | published | a curator |
| published | withdraw | withdrawn | a curator |

Guarantee: no release is published that nobody but its asker has signed for. The signature is over this very
release and request, by a reviewer under another name whose key the asker did not register, and it is still
trusted when the release is published. Askers are whose account was charged and who asked for the review last;
if nobody's was charged, all who ever asked for it. Names that differ by case, spaces or what is not seen are
one. Conditions: two names are two people, which only who registers them can see; and a charge to nobody's
account is of one who asks for its review.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.ledger.failures import corrupt
from sfumato.ledger.identity import Identity
from sfumato.ledger.log.approval import Approval
from sfumato.ledger.log.entries import time_of
from sfumato.ledger.log.events import Body, Charged, Committed
from sfumato.ledger.log.hash_chain import Event
from sfumato.ledger.log.member_events import MEMBER_BODIES, Role
from sfumato.ledger.log.member_roll import MemberRoll
from sfumato.ledger.log.review_events import (
    Approved,
    Published,
    Returned,
    ReviewBody,
    ReviewRequested,
    Withdrawn,
)
from sfumato.ledger.log.words import check_comment, check_name, same_name

__all__ = ["Review", "ReviewRoll", "ReviewStep"]

_AFTER: Final[dict[type[ReviewBody], str]] = {
    ReviewRequested: "requested",
    Approved: "approved",
    Returned: "returned",
    Published: "published",
    Withdrawn: "withdrawn",
}
"""The state after each step."""
_BEFORE: Final[dict[type[ReviewBody], tuple[str, ...]]] = {
    ReviewRequested: ("none", "returned", "withdrawn"),
    Approved: ("requested",),
    Returned: ("requested", "approved"),
    Published: ("approved",),
    Withdrawn: ("published",),
}
"""The states that each step goes on from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewStep:
    """One step of a release's way.

    Attributes
    ----------
    time : datetime
        When it was recorded, in UTC.
    state : str
        What the release was from then on: "requested", "approved", "returned", "published" or "withdrawn".
    by : str
        Who did it.
    comment : str
        What they said.
    """

    time: datetime
    state: str
    by: str
    comment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """Where one release is on its way to the public.

    Attributes
    ----------
    number : int
        Of its charge.
    asked_by : str
        Whose account was charged; "" if nobody's.
    steps : tuple of ReviewStep
        What happened, in order.
    approval : Approval or None
        What was signed, while it counts: from an approval until the next request.
    public_key, signature : str
        By which key, and how, in hexadecimal; "" without an approval.

    Examples
    --------
    >>> Review(number=1, asked_by="ada", steps=()).state
    'none'
    """

    number: int
    asked_by: str
    steps: tuple[ReviewStep, ...]
    approval: Approval | None = None
    public_key: str = ""
    signature: str = ""

    @property
    def state(self) -> str:
        """What the release is now; "none" if nobody asked for a review."""
        return self.steps[-1].state if self.steps else "none"

    @property
    def requested_by(self) -> str:
        """Who asked for the review last; "" if nobody did."""
        return next((step.by for step in reversed(self.steps) if step.state == "requested"), "")


@dataclass(slots=True)
class _Release:
    """What is known of one charge and its release."""

    receipt: str
    asked_by: str
    simulated: bool
    payload: str = ""
    request: str = ""
    steps: tuple[ReviewStep, ...] = ()
    approved: Approved | None = None


class ReviewRoll:
    """What the events of reviews add up to, with the members that they are held against.

    Parameters
    ----------
    identity : Identity
        What the ledger was made for.
    """

    def __init__(self, identity: Identity) -> None:
        self.members = MemberRoll(identity.budget)
        self._ledger = identity.ledger
        self._releases: dict[int, _Release] = {}

    def review(self, number: int) -> Review:
        """Return where a release is.

        Raises
        ------
        ParameterError
            No release was stored with that charge.
        """
        release = self._stored(number)
        approved = release.approved
        return Review(
            number=number,
            asked_by=release.asked_by,
            steps=release.steps,
            approval=None if approved is None else self.approval(number, approved.by, approved.comment),
            public_key="" if approved is None else approved.public_key,
            signature="" if approved is None else approved.signature,
        )

    def reviews(self) -> tuple[Review, ...]:
        """Return all that ever were in review, in order of their charges."""
        return tuple(self.review(number) for number, each in sorted(self._releases.items()) if each.steps)

    def approval(self, number: int, by: str, comment: str) -> Approval:
        """Return what a reviewer would sign."""
        release = self._stored(number)
        return Approval(
            ledger=self._ledger,
            number=number,
            receipt=release.receipt,
            payload=release.payload,
            request=release.request,
            by=by,
            comment=comment,
        )

    def check(self, body: Body) -> None:
        """Refuse an event about members or reviews that breaks a rule.

        Raises
        ------
        ParameterError
            Which rule, and for whom.
        """
        if isinstance(body, MEMBER_BODIES):
            self.members.check(body)
        elif isinstance(body, ReviewBody):
            self._check_step(body)

    def follow(self, event: Event, body: Body, time: str) -> None:
        """Add what an event of the log says, after checking it by the same rules.

        Raises
        ------
        LedgerCorrupt
            It breaks one: who wrote it did not check.
        """
        try:
            self.check(body)
        except ParameterError as error:
            rule = "hold accounts, members and reviews by their rules"
            raise corrupt(rule, f"another one at event {event.position}") from error
        self.take(event, body, time_of(event, time))

    def take(self, event: Event, body: Body, time: datetime) -> None:
        """Add what an event says."""
        if isinstance(body, MEMBER_BODIES):
            self.members.take(body)
        elif isinstance(body, Charged) and event.charge is not None:
            self._releases[event.charge] = _Release(event.digest, body.analyst, body.simulated)
        elif isinstance(body, Committed) and event.charge is not None:
            self._releases[event.charge].payload = body.payload
        elif isinstance(body, ReviewBody):
            release = self._releases[body.number]
            step = ReviewStep(time=time, state=_AFTER[type(body)], by=body.by, comment=body.comment)
            release.steps += (step,)
            if isinstance(body, Approved):
                release.approved = body
            elif isinstance(body, ReviewRequested | Returned):
                release.approved = None
            if isinstance(body, ReviewRequested):
                release.request = event.digest

    def _stored(self, number: int) -> _Release:
        release = self._releases.get(number)
        if release is None or not release.payload:
            rule = "be that of a charge with a stored release"
            _check.refuse("number", rule, number, "entries() says which are committed")
        return release

    def _check_step(self, body: ReviewBody) -> None:
        release, review = self._stored(body.number), self.review(body.number)
        check_name("by", body.by)
        check_comment(body.comment)
        if review.state not in _BEFORE[type(body)]:
            wanted = " or ".join(_BEFORE[type(body)])
            found = f"release {body.number} is {review.state}"
            rule = f"be one whose state is {wanted}"
            _check.refuse_state("number", rule, found, "see reviews.of(number).steps")
        match body:
            case ReviewRequested():
                self._check_request(body, release)
            case Approved():
                self._check_approval(body, review)
            case Returned():
                self.members.require("by", body.by, Role.REVIEWER, Role.CURATOR)
                self._check_other(body.by, review)
            case Published() | Withdrawn():
                self.members.require("by", body.by, Role.CURATOR)
                self._check_trusted(body, review)

    def _check_request(self, body: ReviewRequested, release: _Release) -> None:
        if release.simulated:
            found = "its noise was simulated: it protects nobody"
            _check.refuse_state(
                "number", "be of a release with real noise", found, "ask again without a seed"
            )
        if body.by != release.asked_by:
            self.members.require("by", body.by, Role.CURATOR)

    def _check_approval(self, body: Approved, review: Review) -> None:
        self.members.require("by", body.by, Role.REVIEWER)
        self._check_other(body.by, review)
        if self.members.key_of(body.by) != body.public_key:
            found = "it is by another key, or none is registered"
            remedy = "let a curator register it, by members.register_key"
            _check.refuse_state("signature", f"be by the key of {body.by!r}", found, remedy)
        if same_name(self.members.registrar_of(body.public_key)) in _askers(review):
            found = "who asked registered it"
            _check.refuse_state(
                "signature", "be by a key that others vouch for", found, "let another curator"
            )
        approval = self.approval(body.number, body.by, body.comment)
        try:
            signature = bytes.fromhex(body.signature)
        except ValueError:
            signature = b""
        if not approval.signed_by(body.public_key, signature):
            found = "it is of something else"
            _check.refuse_state("signature", "be one of the approval", found, "sign reviews.approval(number)")

    def _check_other(self, by: str, review: Review) -> None:
        if same_name(by) in _askers(review):
            rule = "be another than who asked, or asked for the review"
            _check.refuse("by", rule, by, "let another reviewer decide")

    def _check_trusted(self, body: ReviewBody, review: Review) -> None:
        if not isinstance(body, Published):
            return
        if self.members.key_was_revoked(review.public_key):
            found = "it was revoked since"
            remedy = "return the release, and have it approved anew"
            _check.refuse_state("the key of the approval", "be trusted", found, remedy)


def _askers(review: Review) -> frozenset[str]:
    """Who has an interest in a release: who asked the question, and who asked for the review last.

    Where no account was charged, a request alone tells whose release it is: all who ever made one count.
    """
    names = {review.asked_by, review.requested_by}
    if not review.asked_by:
        names.update(step.by for step in review.steps if step.state == "requested")
    return frozenset(same_name(name) for name in names - {""})
