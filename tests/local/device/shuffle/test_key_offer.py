"""A device seals for the collection's own key or for one that it pinned, whatever it is offered."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from sfumato import local
from sfumato.errors import ParameterError
from sfumato.local import device
from sfumato.local.device.shuffle.key_offer import key_offer
from sfumato.local.shuffle import Collection, SecretKey

ANALYST, OWN, LATER = (
    SecretKey("analyst", b"a" * 32),
    SecretKey("shuffler", b"s" * 32),
    SecretKey("shuffler", b"l" * 32, "aes-256-gcm"),
)
KNOWN = Collection(
    protocol=local.RandomizedResponse(epsilon=2.0, domain=local.Domain(["no", "yes"])),
    batch_size=4,
    analyst=ANALYST.public,
    shuffler=OWN.public,
).device
UNTIL = dt.datetime(2027, 1, 4, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))


def offer(current: SecretKey, **changes: Any) -> dict[str, Any]:
    made = key_offer(KNOWN, current.public, [(OWN.public, UNTIL), (LATER.public, None)])
    return {**json.loads(json.dumps(made)), **changes}


def test_a_pinned_key_is_taken_and_its_envelope_opens() -> None:
    assert offer(OWN)["keys"][0]["until"] == "2027-01-04T00:00:00+00:00"
    assert device.offered_key(KNOWN, offer(OWN)) == OWN.public
    found = device.offered_key(KNOWN, offer(LATER), {LATER.public.id})
    assert found == LATER.public
    sent = KNOWN.envelope("yes", bytes(16), key=found)
    assert len(sent) == KNOWN.envelope_width
    assert OWN.opened(sent, KNOWN.envelope_context) is None
    opened = LATER.opened(sent, KNOWN.envelope_context)
    assert opened is not None
    assert opened[:16] == KNOWN.nonce(bytes(16))
    assert ANALYST.opened(opened[16:], KNOWN.report_context) is not None
    assert LATER.public.id == (
        "afc60ae20195132e1777ec325fad2045a5aac335df401bf2ebc60dc3efaac5da"
    )  # frozen: programs hold it


def test_an_analysts_key_is_taken_if_it_is_pinned() -> None:
    own, later = ANALYST.public, SecretKey("analyst", b"m" * 32).public
    shufflers = OWN.public, [(OWN.public, None)]

    def both(current: device.PublicKey, *analysts: device.PublicKey) -> dict[str, Any]:
        listed = [(key, UNTIL) for key in analysts]
        made: dict[str, Any] = json.loads(json.dumps(key_offer(KNOWN, *shufflers, (current, listed))))
        return made

    assert device.offered_analyst_key(KNOWN, offer(OWN)) == own
    assert device.offered_analyst_key(KNOWN, both(own, own, later)) == own
    assert device.offered_analyst_key(KNOWN, both(later, own, later), [later.id]) == later
    assert device.offered_key(KNOWN, both(later, own, later)) == OWN.public
    sent = KNOWN.envelope("yes", bytes(16), analyst=later)
    assert len(sent) == KNOWN.envelope_width
    assert OWN.opened(sent, KNOWN.envelope_context) is None  # it says under which key its records are
    assert OWN.opened(sent, KNOWN.context_under(later)) is not None
    forged = device.PublicKey("analyst", OWN.public.point, own.token)
    for given, pins, told in (
        (both(later, own, later), (), "offer must be of a key that is pinned"),
        (both(forged, forged), [forged.id], "analyst must be an analyst's, and not the shuffler's"),
        (both(OWN.public, OWN.public), [OWN.public.id], "analyst must be the public key of one analyst"),
        (offer(OWN, analyst=3), [], "offer must list the analyst's keys, got something else"),
        (offer(OWN, analyst={"keys": []}), [], "offer must name one of its keys, got none"),
        (offer(OWN, collection="00"), [], "offer must be of this collection"),
    ):
        with pytest.raises(ParameterError, match=told):
            device.offered_analyst_key(KNOWN, given, pins)


def test_offers_that_are_refused() -> None:
    stranger = SecretKey("shuffler", b"x" * 32).public
    forged = [{"id": LATER.public.id, "key": stranger.to_text(), "until": None}]
    analysts = [{"id": ANALYST.public.id, "key": ANALYST.public.to_text()}]
    pins = [LATER.public.id]
    for given, told in (
        (offer(OWN, collection="00"), "offer must be of this collection"),
        (offer(OWN, keys=3), "offer must list at most 64 keys"),
        (offer(OWN, keys=[3]), "offer must list at most 64 keys"),
        (offer(OWN, keys=[{}] * 65), "offer must list at most 64 keys"),
        (offer(OWN, offered=None), "offer must name one of its keys, got none"),
        (offer(OWN, offered=stranger.id), "offer must name one of its keys"),
        (offer(OWN, offered=[1]), "offer must name one of its keys"),
        (offer(LATER, keys=forged), "offer must give each key its own id"),
        (offer(OWN, keys=analysts, offered=ANALYST.public.id), "shuffler"),
        (offer(OWN, format="x"), "offer must be a document of the format sfumato.shuffler-keys"),
        (key_offer(KNOWN, stranger, [(stranger, None)]), "offer must be of a key that is pinned"),
    ):
        with pytest.raises(ParameterError, match=told):
            device.offered_key(KNOWN, given, pins)
    with pytest.raises(ParameterError, match="pins must be a collection of ids"):
        device.offered_key(KNOWN, offer(LATER), LATER.public.id)
    for key in (ANALYST.public, SecretKey("shuffler", b"a" * 32)):
        with pytest.raises(ParameterError, match="key must be"):
            KNOWN.envelope("yes", bytes(16), key=key)  # type: ignore[arg-type]
