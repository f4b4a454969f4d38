"""Limits of all collections together, and what is remembered of addresses."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import pytest

from sfumato.errors import ParameterError
from sfumato.server import Shuffler
from sfumato.server.group_commit import GroupCommit
from sfumato.server.limits import Limits
from sfumato.server.shared_limits import Busy, SharedLimits
from sfumato.server.token_bucket import TokenBucket
from tests.server.setting import SHUFFLER, collection, envelope

PLACE, OTHER = "192.0.2.1", "192.0.2.2"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def refused(limits: SharedLimits, own: TokenBucket, count: int, address: str = "") -> str | None:
    try:
        limits.pay(own, count, address)
    except Busy as busy:
        return busy.limit if busy.status == 429 else "another status"
    return None


def test_a_rate_of_all_and_one_of_each_address_are_paid_together_or_not_at_all() -> None:
    clock = Clock()
    limits = SharedLimits(Limits(total_rate=10.0, sender_rate=4.0), clock)
    one, two = TokenBucket(8.0, 0.0), TokenBucket(math.inf, 0.0)
    assert [refused(limits, one, 3, PLACE), refused(limits, one, 2, PLACE)] == [None, "sender"]
    assert [refused(limits, two, 1, PLACE), refused(limits, two, 1, PLACE)] == [None, "sender"]
    assert [refused(limits, one, 4, OTHER), refused(limits, one, 2, "192.0.2.3")] == [None, "rate"]
    assert [refused(limits, two, 2, "192.0.2.3"), refused(limits, two, 1, "192.0.2.4")] == [None, "total"]
    assert limits.senders == 4
    clock.now = 0.5
    assert [refused(limits, two, 2, PLACE), refused(limits, two, 1, PLACE)] == [None, "sender"]
    clock.now = 10.0  # all that they sent is paid for: who sends now is remembered alone
    assert refused(limits, one, 8, OTHER) is None  # more than a second's worth, which is paid for in two
    assert limits.senders == 1
    clock.now = 11.5
    assert refused(limits, two, 1, PLACE) is None
    assert limits.senders == 2
    clock.now = 12.6
    assert refused(limits, two, 1, PLACE) is None
    assert limits.senders == 1
    unlimited = SharedLimits(Limits(), clock)
    assert not unlimited.by_address
    assert refused(unlimited, TokenBucket(math.inf, 0.0), 1 << 40, PLACE) is None
    assert unlimited.senders == 0


class Files:
    """Something that takes place on the disk, and was looked at some times."""

    def __init__(self, size: int) -> None:
        self.stored_bytes = self.real = size
        self.looked = 0

    def look(self) -> None:
        self.stored_bytes, self.looked = self.real, self.looked + 1


def test_what_all_store_together_is_bounded_and_looked_at_again() -> None:
    clock, one, two = Clock(), Files(60), Files(30)
    limits = SharedLimits(Limits(total_stored=100), clock)
    limits.enter(one)
    limits.enter(two)
    limits.check_stored()
    two.stored_bytes = two.real = 40
    for now, looks in ((0.5, 0), (1.0, 1), (1.5, 1)):
        clock.now = now
        with pytest.raises(Busy, match="503, 'full'"):
            limits.check_stored()
        assert one.looked == looks
    one.real, clock.now = 50, 2.0  # a batch was moved away
    limits.check_stored()
    one.stored_bytes = one.real = 70
    limits.leave(one)
    limits.check_stored()
    SharedLimits(Limits()).check_stored()


def test_envelopes_of_all_collections_wait_in_one_room(tmp_path: Path) -> None:
    made = [collection(4, name=name) for name in ("a", "b")]
    size = made[0].device.envelope_width
    shared = SharedLimits(Limits(total_waiting=3 * size))

    async def run() -> None:
        takers = [GroupCommit(each, Limits(), pytest.fail, shared=shared) for each in shufflers]
        try:
            sent = [[envelope(each, client) for client in range(2)] for each in made]
            # Tasks run in turn up to where they wait for the store, which answers by way of this loop.
            answers = await asyncio.gather(
                *(taker.take(few) for taker, few in zip(takers, sent, strict=True)), return_exceptions=True
            )
            assert answers[0] == [True, True]
            assert isinstance(answers[1], Busy)
            assert answers[1].limit == "waiting"
            assert await takers[1].take(sent[1]) == [True, True]
            assert await takers[1].take([sent[1][0]] * 9) == [True] * 9  # one request is always allowed
        finally:
            for taker in takers:
                taker.stop()

    shufflers = [Shuffler(each.device, SHUFFLER, tmp_path / each.name) for each in made]
    asyncio.run(run())
    shared.begin_waiting(3 * size)  # nothing waits any more
    for each in shufflers:
        each.close()


def test_stored_bytes_follow_what_is_released_and_taken_away(tmp_path: Path) -> None:
    made = collection(2)
    with Shuffler(made.device, SHUFFLER, tmp_path) as shuffler:
        for clients in (range(3), range(3, 8), range(8, 9)):
            shuffler.take([envelope(made, client) for client in clients])
        batches = [shuffler.path(number) for number in range(1, 5)]
        size = (tmp_path / "waiting.db").stat().st_size
        assert shuffler.stored_bytes == size + sum(path.stat().st_size for path in batches)
        gone = batches[0].stat().st_size
        batches[0].unlink()
        before = shuffler.stored_bytes
        shuffler.look()
        assert shuffler.stored_bytes == before - gone
    with Shuffler(made.device, SHUFFLER, tmp_path) as again:
        assert again.stored_bytes == before - gone


@pytest.mark.parametrize(
    "limits", [{"total_rate": 0.0}, {"sender_rate": -1.0}, {"total_waiting": 0}, {"total_stored": 0.5}]
)
def test_limits_that_are_none(limits: dict[str, float]) -> None:
    with pytest.raises(ParameterError, match=f"{next(iter(limits))} must be"):
        Limits(**limits)  # type: ignore[arg-type]
