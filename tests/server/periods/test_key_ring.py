"""A shuffler's keys over time: the new one is offered, the old one opens until its date, and no longer."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.local import device
from sfumato.local.shuffle import SecretKey
from sfumato.server import Shuffler
from sfumato.server.periods.key_ring import KeyRing, ShufflerKey
from tests.server.setting import ANALYST, SHUFFLER, collection, memory_folder, values_in

MADE = collection(4)
LATER = SecretKey("shuffler", b"l" * 32)
CHANGE, OVER = dt.datetime(2027, 1, 4, tzinfo=dt.UTC), dt.datetime(2027, 1, 11, tzinfo=dt.UTC)


def key(secret: SecretKey, **times: Any) -> ShufflerKey:
    return ShufflerKey(public=secret.public, secret=secret, **times)


class Clock:
    now = CHANGE.timestamp() - 1

    def __call__(self) -> float:
        return self.now


def test_a_change_of_keys_loses_nobody() -> None:
    clock = Clock()
    ring = KeyRing([key(SHUFFLER, until=OVER), key(LATER, offered=CHANGE)], now=clock)
    with memory_folder() as folder, Shuffler(MADE.device, ring, folder) as shuffler:

        def sent(client: int, pins: tuple[str, ...] = (LATER.public.id,)) -> bytes:
            found = device.offered_key(MADE.device, shuffler.key_offer(), pins)
            return MADE.device.envelope(client, client.to_bytes(16, "big"), key=found)

        early = sent(0)
        assert SHUFFLER.opened(early, MADE.device.envelope_context) is not None
        clock.now = CHANGE.timestamp()
        fresh = sent(1)
        assert LATER.opened(fresh, MADE.device.envelope_context) is not None
        with pytest.raises(ParameterError, match=f"be of a key that is pinned, got '{LATER.public.id}"):
            sent(1, pins=())
        late = MADE.device.envelope(2, (2).to_bytes(16, "big"))  # a device that asks for no key
        assert shuffler.take([early, fresh, late]) == [True] * 3
        clock.now = OVER.timestamp()
        beyond = MADE.device.envelope(3, (3).to_bytes(16, "big"))
        assert shuffler.take([beyond]) == [False]
        assert shuffler.refused == {"shape": 0, "seal": 1}
        assert [each["id"] for each in shuffler.key_offer()["keys"]] == [LATER.public.id]
        # A client is known again by its nonce, whichever key it sealed for.
        assert shuffler.take([sent(0), sent(3)]) == [True, True]
        assert values_in(MADE, shuffler.path(1).read_bytes()) == Counter(range(4))


def test_a_destroyed_key_is_stated_by_its_public_half(tmp_path: Path) -> None:
    gone = ShufflerKey(public=SHUFFLER.public, until=CHANGE)
    ring = KeyRing([gone, key(LATER)], now=CHANGE.timestamp)
    with Shuffler(MADE.device, ring, tmp_path) as shuffler:
        envelope = MADE.device.envelope(1, bytes(16), key=LATER.public)
        assert shuffler.take([envelope, MADE.device.envelope(2, b"2" * 16)]) == [True, False]
        shuffler.change_keys(KeyRing.of(SHUFFLER))
        assert shuffler.take([envelope, MADE.device.envelope(2, b"2" * 16)]) == [False, True]
    over = KeyRing([gone], now=OVER.timestamp).offer(MADE.device)
    assert (over["offered"], over["keys"]) == (None, [])
    with pytest.raises(ParameterError, match="offer must name one of its keys, got none"):
        device.offered_key(MADE.device, over)


def test_rings_that_are_none() -> None:
    own, early = key(SHUFFLER), CHANGE - dt.timedelta(1)
    wrong = SecretKey("analyst", b"x" * 32)
    for make, told in (
        (lambda: KeyRing([]), "keys must be 1 to 8, got 0"),
        (
            lambda: KeyRing([key(SecretKey("shuffler", bytes([n]) * 32)) for n in range(9)]),
            "be 1 to 8, got 9",
        ),
        (lambda: KeyRing([own, key(SHUFFLER, until=OVER)]), "keys must be different"),
        (lambda: KeyRing([ShufflerKey(public=LATER.public, until=OVER)], now=lambda: 0.0), "be secret while"),
        (lambda: ShufflerKey(public=LATER.public), "key must be secret, but only its public half"),
        (lambda: key(wrong), "key must be a shuffler's, got 'analyst'"),
        (lambda: key(LATER, offered=CHANGE, until=early), "until must be after offered 2027-01-04"),
        (lambda: key(LATER, offered=CHANGE.replace(tzinfo=None)), "offered must be a time with its offset"),
        (lambda: KeyRing.of(LATER).check(MADE.device), "key must be that of the collection's shuffler"),
        (
            lambda: KeyRing([own, key(SecretKey("shuffler", b"a" * 32))]).check(same_point()),
            "key must be another than the analyst's",
        ),
    ):
        with pytest.raises(ParameterError, match=told):
            make()


def same_point() -> Any:
    """A collection whose analyst has the point of a shuffler's key."""
    point = SecretKey("shuffler", b"a" * 32).public.point
    analyst = device.PublicKey("analyst", point, ANALYST.public.token)
    return collection(4, analyst=analyst).device
