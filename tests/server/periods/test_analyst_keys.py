"""An analyst's keys over time: overlapping, one a batch, and refused when their time is over."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.local import device
from sfumato.local.device import PublicKey
from sfumato.local.shuffle import MixedBatch, SecretKey
from sfumato.server import Shuffler
from sfumato.server.periods.analyst_keys import AnalystKey, AnalystKeys
from tests.server.setting import ANALYST, SHUFFLER, collection

MADE = collection(4)
LATER, THIRD = SecretKey("analyst", b"m" * 32, "aes-256-gcm"), SecretKey("analyst", b"n" * 32)
CHANGE, OVER = dt.datetime(2027, 1, 4, tzinfo=dt.UTC), dt.datetime(2027, 1, 11, tzinfo=dt.UTC)


class Clock:
    now = CHANGE.timestamp() - 1

    def __call__(self) -> float:
        return self.now


def keys(clock: Clock) -> AnalystKeys:
    own = AnalystKey(public=ANALYST.public, until=OVER)
    return AnalystKeys([own, AnalystKey(public=LATER.public, offered=CHANGE)], now=clock)


def sent(client: int, analyst: PublicKey | None = None) -> bytes:
    return MADE.device.envelope(client, client.to_bytes(16, "big"), analyst=analyst)


def under(data: bytes) -> dict[str, int]:
    """How many records of a batch each key opens."""
    rows, context = MixedBatch.from_bytes(data).sealed, MADE.device.report_context
    named = {"own": ANALYST, "later": LATER}
    return {
        name: sum(key.opened(row.tobytes(), context) is not None for row in rows)
        for name, key in named.items()
    }


def test_each_batch_is_under_one_key_however_reports_came(tmp_path: Path) -> None:
    clock = Clock()
    shuffler = Shuffler(MADE.device, SHUFFLER, tmp_path, keys(clock))
    assert device.offered_analyst_key(MADE.device, shuffler.key_offer()) == ANALYST.public
    clock.now = CHANGE.timestamp()
    found = device.offered_analyst_key(MADE.device, shuffler.key_offer(), [LATER.public.id])
    assert found == LATER.public
    assert shuffler.take([sent(0), sent(1, found), sent(2), sent(3, found)]) == [True] * 4
    assert shuffler.progress == (0, 4)  # four wait, and no batch is of two keys
    assert shuffler.take([sent(0, found), sent(1)]) == [True] * 2  # known by their nonces: counted once
    assert shuffler.progress == (0, 4)
    shuffler.close()
    with Shuffler(MADE.device, SHUFFLER, tmp_path, keys(clock)) as again:
        envelopes = [sent(4), sent(5, found), sent(6), sent(7, found), sent(8)]
        assert again.take(envelopes) == [True] * 5
        assert again.progress == (2, 1)
        batches = [again.path(number).read_bytes() for number in (1, 2)]
        assert [under(data) for data in batches] == [{"own": 4, "later": 0}, {"own": 0, "later": 4}]
        assert set(again.analysts) == {ANALYST.public, LATER.public}
        clock.now = OVER.timestamp()
        assert again.analysts == (LATER.public,)
        assert again.take([sent(9), sent(10, found), sent(11, THIRD.public)]) == [False, True, False]
        assert again.refused == {"shape": 0, "seal": 2}
        assert [each["id"] for each in again.key_offer()["analyst"]["keys"]] == [LATER.public.id]
        again.change_keys(again._keys)  # none is stated: the collection's own alone
        assert again.take([sent(9), sent(10, found)]) == [True, False]
        assert "analyst" not in again.key_offer()

    opening = MADE.opening([LATER, ANALYST])
    assert opening.add_batches([MixedBatch.from_bytes(data) for data in batches]) == 2
    assert (opening.estimate().reports, opening.refused["seal"], opening.exposed) == (8, 0, ())
    alone = MADE.opening([LATER])  # the own one was destroyed
    alone.add_batches([MixedBatch.from_bytes(data) for data in batches])
    assert (alone.estimate().reports, alone.refused["seal"], alone.exposed) == (4, 4, (1,))


def test_what_cannot_be_said_of_an_analysts_keys() -> None:
    own = AnalystKey(public=ANALYST.public)
    shuffler = PublicKey("analyst", SHUFFLER.public.point, ANALYST.public.token)
    many = [AnalystKey(public=SecretKey("analyst", bytes([n]) * 32).public) for n in range(9)]
    known, both = MADE.device, [ANALYST, ANALYST]
    tries: tuple[tuple[Any, str], ...] = (
        (lambda: AnalystKeys([]), "keys must be 1 to 8, got 0"),
        (lambda: AnalystKeys(many), "keys must be 1 to 8, got 9"),
        (lambda: AnalystKeys(many[:5]), "keys must be at most 4 whose time is not over, got 5; state until"),
        (lambda: AnalystKeys([own, own]), "keys must be different"),
        (lambda: AnalystKey(public=SHUFFLER.public), "key must be an analyst's, got 'shuffler'"),
        (
            lambda: AnalystKey(public=LATER.public, offered=OVER, until=CHANGE),
            "until must be after offered 2027-01-11",
        ),
        (
            lambda: AnalystKeys.of(LATER.public).check(known, [SHUFFLER.public]),
            "keys must have that of the collection's analyst among them, got others; add it, with until",
        ),
        (
            lambda: AnalystKeys([own, AnalystKey(public=shuffler)]).check(known, [SHUFFLER.public]),
            "keys must be others than the shuffler's",
        ),
        (lambda: sent(1, SHUFFLER.public), "analyst must be an analyst's, and not the shuffler's"),
        (lambda: sent(1, shuffler), "analyst must be an analyst's, and not the shuffler's"),
        (lambda: sent(1, "key"), "analyst must be"),  # type: ignore[arg-type]
        (lambda: MADE.opening(LATER), "use that one, or pass a list of later keys"),
        (lambda: MADE.opening([]), "key must be 1 to 8 keys, got 0"),
        (lambda: MADE.opening([SHUFFLER]), "key must be an analyst's, got 'shuffler'"),
        (lambda: MADE.opening(both), "keys must be different"),
    )
    for make, told in tries:
        with pytest.raises(ParameterError, match=told):
            make()
