"""A release's way to the public: who may take which step, what is signed, and that a forged step is found."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.errors import LedgerCorrupt, LedgerUnavailable, ParameterError
from sfumato.ledger import Approval, Budget, Ledger, LedgerExport, Role
from sfumato.ledger.log.event_log import walk
from sfumato.ledger.log.events import body_of
from sfumato.ledger.log.review_events import (
    Approved,
    Published,
    Returned,
    ReviewBody,
    ReviewRequested,
    Withdrawn,
)
from sfumato.ledger.log.review_roll import ReviewRoll
from sfumato.privacy import PureDP
from tests.cases import cases
from tests.ledger.tampering import execute, rewrite

Open = Callable[..., Ledger]
KEYS = {
    name: Ed25519PrivateKey.from_private_bytes(name.encode().ljust(32)) for name in ("rita", "rolf", "ada")
}
NOW = datetime(2026, 11, 29, tzinfo=UTC)


def prepared(ledger: Ledger) -> Ledger:
    """Members, and one stored release of ada's, who is a reviewer and curator as well."""
    members = ledger.members
    members.set_roles("carl", {Role.CURATOR})
    members.set_roles("ada", set(Role), by="carl")
    for name in ("rita", "rolf"):
        members.set_roles(name, {Role.REVIEWER}, by="carl")
    for name, key in KEYS.items():
        members.register_key(name, key.public_key(), by="carl")
    ledger.grant("ada", Budget.pure(epsilon=0.5), by="carl", reason="the yearly report")
    ledger.commit(ledger.charge(PureDP(0.1), delta=0.0, analyst="ada", purpose="how many"), b"answer")
    return ledger


@pytest.fixture
def ledger(open_ledger: Open) -> Ledger:
    return prepared(open_ledger())


def approve(ledger: Ledger, by: str, number: int = 1, *, key: str = "") -> None:
    approval = ledger.reviews.approval(number, by=by, comment="fine")
    ledger.reviews.approve(approval, approval.sign(KEYS[key or by]))


def published(ledger: Ledger) -> Ledger:
    ledger.reviews.request(1, by="ada", comment="for the report")
    approve(ledger, "rita")
    ledger.reviews.publish(1, by="carl")
    return ledger


def test_a_release_is_published_by_two_people(open_anywhere: Open, at: Callable[[str], Any]) -> None:
    ledger = published(prepared(open_anywhere(at("l"))))
    review = ledger.reviews.of(1)
    assert [(step.state, step.by, step.comment) for step in review.steps] == [
        ("requested", "ada", "for the report"),
        ("approved", "rita", "fine"),
        ("published", "carl", ""),
    ]
    assert (review.state, review.asked_by, review.requested_by) == ("published", "ada", "ada")
    assert review.approval is not None
    assert review.approval.signed_by(review.public_key, bytes.fromhex(review.signature))
    assert ledger.entries()[0].purpose == "how many"
    assert ledger.verify().sound
    # Another process sees the same, and an export carries it all.
    with Ledger.read(at("l")) as other:
        assert other.reviews.all() == ledger.reviews.all("published") == (review,)
        exported = LedgerExport.parse(other.export())
        with pytest.raises(LedgerUnavailable, match="opened for writing"):
            other.reviews.withdraw(1, by="carl", comment="")
    assert exported.verify(public_key=ledger.public_key).sound
    assert exported.reviews() == (review,)
    assert exported.members() == ledger.members.all()
    assert exported.release_digest(1) == review.approval.payload


def test_a_returned_or_withdrawn_release_goes_round_again(ledger: Ledger) -> None:
    reviews = ledger.reviews
    reviews.request(1, by="carl")
    reviews.send_back(1, by="rolf", comment="say what the column means")
    assert [review.number for review in reviews.all("returned")] == [1]
    published(ledger)
    reviews.withdraw(1, by="carl", comment="a better one comes")
    assert reviews.all("published") == ()
    reviews.request(1, by="ada")
    assert reviews.of(1).approval is None  # it must be signed anew
    approve(ledger, "rolf")
    assert reviews.of(1).public_key == KEYS["rolf"].public_key().public_bytes_raw().hex()


def steps(roll: ReviewRoll, actor: str) -> Iterator[ReviewBody]:
    """Every step that somebody might take with release 1."""
    for kind in (ReviewRequested, Returned, Published, Withdrawn):
        yield kind(number=1, by=actor)
    for key in KEYS.values():
        public_key = key.public_key().public_bytes_raw().hex()
        signature = roll.approval(1, actor, "").sign(key).hex()
        yield Approved(number=1, by=actor, public_key=public_key, signature=signature)


def test_no_sequence_of_steps_publishes_what_only_its_asker_signed(ledger: Ledger) -> None:
    """All sequences of five steps by anybody: each that ends in a publication has another's signature."""
    roll = ReviewRoll(ledger._identity)
    with ledger._log.transaction(write=False) as snapshot:
        events = list(walk(snapshot.connection))
    for event in events:
        roll.take(event, body_of(event), NOW)
    ways: list[tuple[ReviewRoll, tuple[ReviewBody, ...]]] = [(roll, ())]
    publications = refused = 0
    for _ in range(5):
        further = []
        for (before, way), actor in itertools.product(ways, ("ada", "carl", "rita", "eve")):
            for step in steps(before, actor):
                after = copy.deepcopy(before)
                try:
                    after.check(step)
                except ParameterError:
                    refused += 1
                    continue
                after.take(events[-1], step, NOW)
                further.append((after, (*way, step)))
                if isinstance(step, Published):
                    publications += 1
                    signed = [each for each in way if isinstance(each, Approved | ReviewRequested)][-1]
                    assert isinstance(signed, Approved)
                    assert signed.by == "rita"  # ada asked, carl is no reviewer, eve is nobody
                    assert step.by in ("carl", "ada")
        ways = further
    assert publications >= 8
    assert refused > 500
    assert {type(step) for _, way in ways for step in way} == {
        ReviewRequested,
        Approved,
        Returned,
        Published,
        Withdrawn,
    }


REFUSED: dict[str, tuple[Callable[[Ledger], object], str]] = {
    "nothing stored": (lambda led: led.reviews.request(2, by="ada"), "number must be that of a charge"),
    "no number": (lambda led: led.reviews.of(0), "number must be"),
    "another asks": (lambda led: led.reviews.request(1, by="rita"), "by must be a curator"),
    "nobody asks": (lambda led: led.reviews.request(1, by=""), "by must be a printable name"),
    "a long comment": (lambda led: led.reviews.request(1, by="ada", comment="x" * 4001), "comment must be"),
    "a comment with control characters": (
        lambda led: led.reviews.request(1, by="ada", comment="\x1b"),
        "comment must",
    ),
    "no review yet": (lambda led: approve(led, "rita"), "but release 1 is none; see reviews"),
    "not approved": (lambda led: led.reviews.publish(1, by="carl"), "whose state is approved"),
    "not published": (lambda led: led.reviews.withdraw(1, by="carl", comment=""), "whose state is published"),
    "no state": (lambda led: led.reviews.all("open"), "state must be one of requested"),
}


@cases("name", list(REFUSED))
def test_a_step_that_may_not_be_taken_is_refused_and_leaves_no_trace(ledger: Ledger, name: str) -> None:
    attempt, words = REFUSED[name]
    before = ledger.head()
    with pytest.raises(ParameterError, match=words):
        attempt(ledger)
    assert ledger.head() == before


UNSIGNED: dict[str, tuple[Callable[[Ledger], object], str]] = {
    "the asker": (lambda led: approve(led, "ada"), "by must be another than who asked"),
    "the asker as another": (
        lambda led: approve(led, "rolf", key="ada"),
        "signature must be one of the approval",
    ),
    "no reviewer": (lambda led: approve(led, "carl", key="rita"), "by must be a reviewer"),
    "returned by the asker": (
        lambda led: led.reviews.send_back(1, by="ada", comment=""),
        "another than who asked",
    ),
    "returned by nobody": (
        lambda led: led.reviews.send_back(1, by="eve", comment=""),
        "by must be a reviewer or",
    ),
}


@cases("name", list(UNSIGNED))
def test_who_may_not_decide_is_refused(ledger: Ledger, name: str) -> None:
    if not ledger.reviews.all():
        ledger.reviews.request(1, by="ada")
    attempt, words = UNSIGNED[name]
    before = ledger.head()
    with pytest.raises(ParameterError, match=words):
        attempt(ledger)
    assert ledger.head() == before


def test_a_signature_is_of_one_release_of_one_charge_of_one_ledger(ledger: Ledger, open_ledger: Open) -> None:
    ledger.commit(ledger.charge(PureDP(0.1), delta=0.0, analyst="ada"), b"answer")  # the same bytes again
    for number in (1, 2):
        ledger.reviews.request(number, by="ada")
    approval = ledger.reviews.approval(1, by="rita")
    signature = approval.sign(KEYS["rita"])
    with pytest.raises(ParameterError, match="signature must be one of the approval"):
        ledger.reviews.approve(ledger.reviews.approval(2, by="rita"), signature)
    with pytest.raises(ParameterError, match="signature must be one of the approval"):
        ledger.reviews.approve(ledger.reviews.approval(1, by="rita", comment="x"), signature)
    with pytest.raises(ParameterError, match="approval must be about this release"):
        ledger.reviews.approve(prepared(open_ledger()).reviews.approval(1, by="rita"), signature)
    ledger.reviews.approve(Approval.from_json(approval.to_json()), signature)
    assert [review.state for review in ledger.reviews.all()] == ["approved", "requested"]


def test_a_revoked_key_no_longer_publishes_and_a_replaced_one_does(ledger: Ledger) -> None:
    ledger.reviews.request(1, by="ada")
    approve(ledger, "rita")
    ledger.members.revoke_key("rita", by="carl")
    with pytest.raises(ParameterError, match="the key of the approval must be trusted, but it was revoked"):
        ledger.reviews.publish(1, by="carl")
    ledger.reviews.send_back(1, by="rolf", comment="sign anew")
    ledger.reviews.request(1, by="ada")
    with pytest.raises(
        ParameterError, match="signature must be by the key of 'rita', but it is by another key"
    ):
        approve(ledger, "rita")
    approve(ledger, "rolf")
    ledger.members.register_key("rolf", Ed25519PrivateKey.generate().public_key(), by="carl")
    ledger.reviews.publish(1, by="carl")
    assert ledger.verify().sound


def test_a_key_that_the_asker_registered_signs_nothing_of_theirs(ledger: Ledger) -> None:
    own = Ed25519PrivateKey.generate()
    ledger.members.set_roles("puppet", {Role.REVIEWER}, by="ada")
    ledger.members.register_key("puppet", own.public_key(), by="ada")
    ledger.reviews.request(1, by="ada")
    approval = ledger.reviews.approval(1, by="puppet")
    with pytest.raises(ParameterError, match="by a key that others vouch for, but who asked registered it"):
        ledger.reviews.approve(approval, approval.sign(own))


def test_a_reviewer_who_changed_their_mind_is_not_replayed(ledger: Ledger) -> None:
    """Who asked kept rita's signature, and asks again after she returned the release."""
    ledger.reviews.request(1, by="ada")
    approval = ledger.reviews.approval(1, by="rita")
    signature = approval.sign(KEYS["rita"])
    ledger.reviews.approve(approval, signature)
    ledger.reviews.send_back(1, by="rita", comment="a column says too much")
    ledger.reviews.request(1, by="ada")
    with pytest.raises(ParameterError, match="approval must be about this release"):
        ledger.reviews.approve(approval, signature)
    with pytest.raises(ParameterError, match="signature must be one of the approval"):
        ledger.reviews.approve(ledger.reviews.approval(1, by="rita"), signature)
    assert ledger.reviews.of(1).state == "requested"


def test_who_ever_asked_for_the_review_signs_nothing_of_it(ledger: Ledger) -> None:
    """A charge to nobody's account: of ada's it tells by her request only, though dora asks after her."""
    ledger.members.set_roles("dora", {Role.CURATOR}, by="carl")
    ledger.commit(ledger.charge(PureDP(0.1), delta=0.0), b"nobody's")
    ledger.reviews.request(2, by="ada")
    ledger.reviews.send_back(2, by="rita", comment="later")
    ledger.reviews.request(2, by="dora")
    with pytest.raises(ParameterError, match="by must be another than who asked"):
        approve(ledger, "ada", 2)
    approve(ledger, "rita", 2)


@cases("name", ["Ada", " ada", "ada ", "ADA", "\uff41da", "ada\ufe0f"])
def test_another_spelling_of_the_asker_is_the_asker(ledger: Ledger, name: str) -> None:
    if not ledger.reviews.all():
        ledger.reviews.request(1, by="ada")
    key = Ed25519PrivateKey.generate()
    ledger.members.set_roles(name, {Role.REVIEWER, Role.CURATOR}, by="carl")
    ledger.members.register_key(name, key.public_key(), by="carl")
    approval = ledger.reviews.approval(1, by=name)
    with pytest.raises(ParameterError, match="by must be another than who asked"):
        ledger.reviews.approve(approval, approval.sign(key))


def test_simulated_noise_is_not_published(open_ledger: Open) -> None:
    ledger = open_ledger(simulated=True)
    ledger.members.set_roles("carl", {Role.CURATOR})
    ledger.commit(ledger.charge(PureDP(0.1), delta=0.0, simulated=True), b"answer")
    with pytest.raises(ParameterError, match="real noise, but its noise was simulated"):
        ledger.reviews.request(1, by="carl")


FORGED: dict[str, dict[str, Any]] = {
    "published by one who is no curator": {"kind": "publish", "by": "rita"},
    "approved by the asker": {"kind": "approve", "by": "ada"},
    "approved with another signature": {"kind": "approve", "signature": "00" * 64},
    "approved with no signature": {"kind": "approve", "signature": "x"},
    "approved with another comment": {"kind": "approve", "comment": "better than fine"},
    "another release": {"kind": "request", "release": 2},
    "roles given by one who is no curator": {"kind": "account", "by": "rita"},
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_a_forged_step_is_found_though_the_chain_is_whole(
    open_ledger: Open, tmp_path: Path, forged: dict[str, Any]
) -> None:
    published(prepared(open_ledger(tmp_path / "l"))).close()
    kinds = [kind for (kind,) in _rows(tmp_path / "l")]
    changed = {name: value for name, value in forged.items() if name != "kind"}

    def change(position: int, content: dict[str, Any]) -> None:
        if kinds[position - 1] == forged["kind"] and changed.keys() <= content.keys():
            content.update(changed)

    rewrite(tmp_path / "l", change)
    words = "members and reviews by their rules"
    with Ledger.read(tmp_path / "l") as book:
        with pytest.raises(LedgerCorrupt, match=words):
            book.verify()
        with pytest.raises(LedgerCorrupt, match=words):
            book.reviews.all()
        with pytest.raises(LedgerCorrupt, match=words):
            LedgerExport.parse(book.export()).members()


def _rows(path: Path) -> list[Any]:

    return execute(path, "SELECT kind FROM event ORDER BY position")


def test_of_two_that_decide_at_once_one_is_refused(open_ledger: Open, tmp_path: Path) -> None:
    first = prepared(open_ledger(tmp_path / "l"))
    second = Ledger.manage(tmp_path / "l")
    first.reviews.request(1, by="ada")
    approval = second.reviews.approval(1, by="rolf")
    approve(first, "rita")
    with second, pytest.raises(ParameterError, match="but release 1 is approved"):
        second.reviews.approve(approval, approval.sign(KEYS["rolf"]))
