"""Limits that all collections of a process have together.

>>> limits = SharedLimits(Limits(total_waiting=1000, total_stored=5000))
>>> limits.begin_waiting(900)
>>> limits.begin_waiting(200)
Traceback (most recent call last):
...
sfumato.server.shared_limits.Busy: (503, 'waiting')
>>> limits.end_waiting(900)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Protocol, final

from sfumato.server.limits import Limits
from sfumato.server.request_room import RequestRoom
from sfumato.server.token_bucket import TokenBucket

__all__ = ["Busy", "SharedLimits", "Stored"]

_LOOK_AGAIN: Final = 1.0
"""Seconds between two looks whether files were taken away."""


class Busy(Exception):
    """More comes than is put up with.

    Parameters
    ----------
    status : int
        HTTP's: 429 for too fast, 503 for too much.
    limit : str
        The counter of requests beyond it.
    """

    def __init__(self, status: int, limit: str) -> None:
        super().__init__(status, limit)
        self.status, self.limit = status, limit


class Stored(Protocol):
    """What takes place on the disk."""

    @property
    def stored_bytes(self) -> int:
        """How many bytes, as far as is known without looking."""

    def look(self) -> None:
        """See how many there are."""


@final
class SharedLimits:
    """What may come and be stored in all collections of a process; used by the thread of its connections.

    Parameters
    ----------
    limits : Limits
    now : callable
        Seconds of a clock that never goes back.

    Attributes
    ----------
    room : RequestRoom
        For requests that are on their way.

    Notes
    -----
    Where there is a rate for each address, an address is remembered with what it may still send until that is
    all it may: a second after its last reports, or as many seconds as it sent seconds' worth at a time. It is
    forgotten when somebody's reports come after that: a process to which nobody sends keeps the last ones.
    """

    def __init__(self, limits: Limits, now: Callable[[], float] = time.monotonic) -> None:
        self.room = RequestRoom(limits.unfinished)
        self._limits, self._now = limits, now
        self._total = TokenBucket(limits.total_rate, now())
        self._senders: dict[str, TokenBucket] = {}
        self._forgot = self._looked = now()
        self._stores: list[Stored] = []
        self._waiting = 0

    @property
    def by_address(self) -> bool:
        """Whether it matters where reports come from."""
        return self._limits.sender_rate is not None

    def enter(self, store: Stored) -> None:
        """Count what a collection stores, too."""
        self._stores = [*self._stores, store]  # replaced as a whole: another thread may be adding up

    def leave(self, store: Stored) -> None:
        """Count it no more."""
        self._stores = [each for each in self._stores if each is not store]

    def pay(self, own: TokenBucket, count: int, address: str) -> None:
        """Count reports that came to a collection from an address.

        Parameters
        ----------
        own : TokenBucket
            The collection's.
        count : int
        address : str
            Of one sender; empty where it is not known.

        Raises
        ------
        Busy
            If they come too fast for the collection, for all of them, or for one address; none is counted.
        """
        now = self._now()
        buckets = {"rate": own, "total": self._total}
        if self._limits.sender_rate is not None and address:
            self._forget(now)
            fresh = TokenBucket(self._limits.sender_rate, now)
            buckets["sender"] = self._senders.setdefault(address, fresh)
        for limit, bucket in buckets.items():
            if not bucket.allows(count, now):
                raise Busy(429, limit)
        for bucket in buckets.values():
            bucket.pay(count)

    def _forget(self, now: float) -> None:
        if now - self._forgot >= _LOOK_AGAIN:
            self._senders = {name: each for name, each in self._senders.items() if each.full_at > now}
            self._forgot = now

    @property
    def senders(self) -> int:
        """How many addresses are remembered."""
        return len(self._senders)

    def check_stored(self) -> None:
        """Refuse reports where all collections together store as much as they may.

        Raises
        ------
        Busy
        """
        most = self._limits.total_stored
        if most is None or self._stored() < most:
            return
        if self._now() - self._looked >= _LOOK_AGAIN:  # batches may have been moved away
            self._looked = self._now()
            for store in self._stores:
                store.look()
            if self._stored() < most:
                return
        raise Busy(503, "full")

    def _stored(self) -> int:
        return sum(store.stored_bytes for store in self._stores)

    def begin_waiting(self, size: int) -> None:
        """Count bytes of envelopes that wait to be stored; one request is always allowed.

        Raises
        ------
        Busy
            If too many wait.
        """
        if self._waiting and self._waiting + size > self._limits.total_waiting:
            raise Busy(503, "waiting")
        self._waiting += size

    def end_waiting(self, size: int) -> None:
        """Count bytes that wait no more."""
        self._waiting -= size
