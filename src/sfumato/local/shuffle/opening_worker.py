"""Unseals the records of released batches and counts them, in this process or in several."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import wait
from threading import Thread
from typing import Any, Final, final

import numpy as np

from sfumato.crypto.secret_key import SecretKey
from sfumato.errors import SourceError
from sfumato.local.base.base_aggregator import Intake
from sfumato.local.base.protocol import ReportProtocol
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.base.report_batch import ReportBatch

__all__ = ["CountedPieces", "OpeningWorker", "counted_by_processes"]

_WORKER: Final[list[OpeningWorker]] = []
"""The one of a process that was started to open records."""


@final
@dataclass(frozen=True, slots=True)
class CountedPieces:
    """What was counted of some pieces, each a number of sealed records.

    Parameters
    ----------
    state : bytes
        Of an aggregator that counted the records of all of them.
    accepted, unsealable : tuple of int
        For each piece, how many records were counted, and of how many the seal did not open.
    """

    state: bytes
    accepted: tuple[int, ...]
    unsealable: tuple[int, ...]


@final
class OpeningWorker:
    """Unseals and counts records.

    Parameters
    ----------
    protocol : ReportProtocol
        That made the reports.
    context : bytes
        That the records' seals are bound to.
    *keys : tuple of str, bytes and str
        Role, seed and cipher of each of the analyst's `SecretKey`, which itself does not go from process to
        process.
    """

    __slots__ = ("_protocol", "_recipients")

    def __init__(
        self, protocol: ReportProtocol[Any, Any], context: bytes, *keys: tuple[str, bytes, str]
    ) -> None:
        self._protocol = protocol
        self._recipients = [SecretKey(*key).recipient(context) for key in keys]

    def count(self, pieces: Sequence[Records]) -> CountedPieces:
        """Return what is counted of some pieces.

        Parameters
        ----------
        pieces : sequence of uint8 arrays of shape (records, width)
            Sealed records.
        """
        aggregator: Intake[Any] = self._protocol.aggregator()
        accepted, unsealable = [], []
        for sealed in pieces:
            before = aggregator.accepted
            unsealable.append(self._add(aggregator, sealed))
            accepted.append(aggregator.accepted - before)
        return CountedPieces(aggregator.to_bytes(), tuple(accepted), tuple(unsealable))

    def _unsealed(self, sealed: Records) -> list[bytes | None]:
        """Return what is under each seal; None where no key opens it.

        Notes
        -----
        All honest records of a piece are under one key: the one that opens the first record is tried first.
        """
        content, each = sealed.tobytes(), sealed.shape[1]
        records = [content[start : start + each] for start in range(0, len(content), each)]
        parts: list[bytes | None] = [None] * len(records)
        left = list(range(len(records)))
        keys = self._recipients
        if len(keys) > 1 and records:
            keys = sorted(keys, key=lambda each: each.opened(records[0]) is None)
        while left and keys:
            opened = keys[0].opened
            for at in left:
                parts[at] = opened(records[at])
            left, keys = [at for at in left if parts[at] is None], keys[1:]
        return parts

    def _add(self, aggregator: Intake[Any], sealed: Records) -> int:
        """Count records, and return of how many the seal does not open."""
        device, width = self._protocol.device, 1 + self._protocol.device.width
        parts = self._unsealed(sealed)
        # A first byte that no device writes is as good as a broken seal.
        sound = [part for part in parts if part is not None and len(part) == width and part[0] <= 1]
        records = np.frombuffer(b"".join(sound), np.uint8).reshape(-1, width)
        for simulated in (False, True):
            some = np.ascontiguousarray(records[records[:, 0] == simulated, 1:])
            aggregator.add_batch(ReportBatch(some, device.digest, simulated))
        return len(parts) - len(sound)


def counted_by_processes(
    tasks: Iterable[Sequence[Records]], processes: int, *made_of: Any
) -> Iterator[CountedPieces]:
    """Yield what several processes count of each task, in the order of the tasks.

    Parameters
    ----------
    tasks : iterable of sequences of uint8 arrays
        Drawn as they are needed, so that memory does not grow with their number.
    processes : int
    *made_of
        What an `OpeningWorker` is made of.

    Raises
    ------
    SourceError
        If a process was ended before its time.
    """
    left, running, lost = iter(tasks), deque[Future[CountedPieces]](), False
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, initializer=_begin, initargs=made_of) as pool:
        try:
            while True:
                for task in islice(left, 2 * processes - len(running)):
                    running.append(pool.submit(_count, [np.ascontiguousarray(piece) for piece in task]))
                if not running:
                    break
                yield running.popleft().result()
        except BrokenProcessPool:
            lost = True
        finally:
            pool.shutdown(cancel_futures=True)
    if lost:
        raise SourceError("processes must last to the end, got one that was ended; open again, with fewer")


def _begin(*made_of: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it is interrupted too, and ends it
    Thread(target=_end_with_parent, daemon=True).start()
    _WORKER.append(OpeningWorker(*made_of))


def _end_with_parent() -> None:
    """End this process, which knows a secret key, when the one that started it is gone, killed or not."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _count(pieces: Sequence[Records]) -> CountedPieces:
    return _WORKER[0].count(pieces)
