"""Between many requests and one store: what waits is stored together, and answered when it is durable."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from sfumato.server.collector import Collector
from sfumato.server.limits import Limits
from sfumato.server.monitoring.counters import Counters
from sfumato.server.shared_limits import Busy, SharedLimits
from sfumato.server.token_bucket import TokenBucket

__all__ = ["GroupCommit", "NotStored"]

_GROUP: Final = 2048
_MAX_BYTES: Final = 1 << 28


class NotStored(Exception):
    """The store failed; nothing of the request is promised."""


@final
@dataclass(frozen=True, slots=True)
class _Waiting:
    envelopes: Sequence[bytes]
    answer: asyncio.Future[list[bool]]


@final
class GroupCommit:
    """Hands envelopes to a collector in a thread of its own, in groups: one transaction for all that wait.

    Parameters
    ----------
    collector : Collector
        Used from that thread alone until `stop`.
    limits : Limits
    failed : callable
        Called once with each failure of the store, in words for the operator.
    counters : Counters, optional
        Of refused envelopes, and of the store's transactions and their time.
    shared : SharedLimits, optional
        Of all collections of the process; of this one alone, by default.
    """

    def __init__(
        self,
        collector: Collector,
        limits: Limits,
        failed: Callable[[str], None],
        counters: Counters | None = None,
        shared: SharedLimits | None = None,
    ) -> None:
        self._collector, self._failed = collector, failed
        self.shared = SharedLimits(limits) if shared is None else shared
        self.shared.enter(collector)
        self._counters = Counters() if counters is None else counters
        self._stores = True
        self._max_waiting = max(1, min(limits.waiting, _MAX_BYTES // collector.envelope_width))
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._waiting = 0
        self._ending, self._ended = threading.Lock(), False
        self._rate = TokenBucket(limits.rate, time.monotonic())
        self._thread = threading.Thread(target=self._run, name="sfumato-taker", daemon=True)
        self._thread.start()

    async def take(self, envelopes: Sequence[bytes], address: str = "") -> list[bool]:
        """Store envelopes, and return which were taken; see `Collector.take`.

        Parameters
        ----------
        envelopes : sequence of bytes
        address : str
            Of who sent them, where the limits ask for it; it is not stored.

        Raises
        ------
        Busy
            If there are too many; none of them was looked at.
        NotStored
            If the store failed, or the thread was ended.
        """
        if self._waiting and self._waiting + len(envelopes) > self._max_waiting:
            raise Busy(503, "waiting")
        self.shared.check_stored()
        self.shared.begin_waiting(self._bytes(len(envelopes)))
        try:
            self.shared.pay(self._rate, len(envelopes), address)
        except Busy:
            self.shared.end_waiting(self._bytes(len(envelopes)))
            raise
        waiting = _Waiting(envelopes, asyncio.get_running_loop().create_future())
        with self._ending:
            if self._ended:
                self.shared.end_waiting(self._bytes(len(envelopes)))
                raise NotStored
            self._waiting += len(envelopes)
            self._queue.put(waiting)
        return await waiting.answer

    def _bytes(self, count: int) -> int:
        return count * self._collector.envelope_width

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            group, size = [first], len(first.envelopes)
            while size < _GROUP and not self._queue.empty():
                following = self._queue.get()
                if following is None:
                    self._queue.put(None)
                    break
                group.append(following)
                size += len(following.envelopes)
            self._store(group, size)

    def _store(self, group: list[_Waiting], size: int) -> None:
        taken: list[bool] | None = None
        before, start = self._collector.refused, time.perf_counter_ns()
        try:
            taken = self._collector.take([one for waiting in group for one in waiting.envelopes])
        except Exception as error:  # the thread must go on, whatever happened: a disk may be freed
            with contextlib.suppress(Exception):  # so also where nobody listens any more
                self._failed(
                    f"the store failed ({type(error).__name__}: {error}); clients are asked to try again"
                )
        self._count(before, start, stored=taken is not None)
        with contextlib.suppress(RuntimeError):  # the loop has ended, and with it whoever waits
            group[0].answer.get_loop().call_soon_threadsafe(self._answer, group, size, taken)

    def _count(self, before: Mapping[str, int], start: int, *, stored: bool) -> None:
        self._stores = stored
        self._counters.add("stored" if stored else "failed")
        self._counters.add("nanoseconds", time.perf_counter_ns() - start)
        for reason, count in self._collector.refused.items():
            self._counters.add(reason, count - before[reason])

    @property
    def healthy(self) -> bool:
        """Whether the thread runs, and the last transaction of the store was one."""
        return self._stores and self._thread.is_alive()

    def _answer(self, group: list[_Waiting], size: int, taken: list[bool] | None) -> None:
        self._waiting -= size
        self.shared.end_waiting(self._bytes(size))
        start = 0
        for waiting in group:
            end = start + len(waiting.envelopes)
            if waiting.answer.done():  # the client has gone
                pass
            elif taken is None:
                waiting.answer.set_exception(NotStored())
            else:
                waiting.answer.set_result(taken[start:end])
            start = end

    def stop(self) -> None:
        """Store what waits, and end the thread; what comes later is not stored."""
        with self._ending:
            self._ended = True
            self._queue.put(None)
        self._thread.join()
        self.shared.leave(self._collector)
