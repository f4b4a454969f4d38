"""What a service puts up with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from sfumato import _check

__all__ = ["Limits"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on what comes. Connections are counted by address while they are open; nothing is stored by it.

    Parameters
    ----------
    body : int
        Maximum number of bytes of a request; at least one envelope is always allowed.
    waiting : int
        Maximum number of envelopes that wait to be stored, and at most 256 MiB of them; beyond it the
        answer is 503.
    rate : float
        Maximum number of envelopes a second, of a collection, with bursts of one second; beyond it the answer
        is 429.
    connections : int
        Maximum number of connections at a time, of all collections together. Who comes when there are so many
        is refused with 503; who came before is served. At most as many as the system lets the process open
        files.
    per_address : int, optional
        Maximum number of connections from one address to all collections, an IPv6 network of 64 bits counting
        as one; beyond it the answer is 503. None behind a proxy, whose address all clients have.
    head_seconds : float
        In which the head of a request must have come, from the connection or the last answer on.
    seconds : float
        In which the rest of a request must have come.
    total_rate : float
        Maximum number of envelopes a second of all collections of the process together; beyond it the answer
        is 429.
    sender_rate : float, optional
        Maximum number of envelopes a second from one address, to all collections together; beyond it the
        answer is 429. No limit by default, and none behind a proxy.
    total_waiting : int
        Maximum number of bytes of envelopes that wait to be stored, of all collections; beyond it the answer
        is 503. One request is always allowed.
    total_stored : int, optional
        Bytes of the folders of all collections, from which on reports are answered 503 until there is room:
        what waits then is still stored, and a batch lies there twice while it is written out. No limit by
        default.
    unfinished : int
        Maximum number of bytes of requests that are on their way, beside the first 16 KiB of each; beyond it
        the answer is 503. One request is always allowed.

    Notes
    -----
    Memory is at most 16 KiB for each of the ``connections`` and ``unfinished`` bytes, beside what waits and
    the connections themselves, which are some 20 KiB each.
    """

    body: int = 1 << 20
    waiting: int = 20_000
    rate: float = math.inf
    connections: int = 16_384
    per_address: int | None = 256
    head_seconds: float = 5.0
    seconds: float = 30.0
    unfinished: int = 1 << 26
    total_rate: float = math.inf
    sender_rate: float | None = None
    total_waiting: int = 1 << 28
    total_stored: int | None = None

    def __post_init__(self) -> None:
        for name in ("body", "waiting", "connections", "unfinished", "total_waiting"):
            _check.integer(name, getattr(self, name), minimum=1)
        for name in ("per_address", "total_stored"):
            if getattr(self, name) is not None:
                _check.integer(name, getattr(self, name), minimum=1)
        for name in ("seconds", "head_seconds"):
            _check.positive(name, getattr(self, name))
        for name in ("rate", "total_rate", "sender_rate"):
            if getattr(self, name) not in (None, math.inf):
                _check.positive(name, getattr(self, name))
