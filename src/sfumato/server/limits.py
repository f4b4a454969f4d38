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
        Maximum number of envelopes a second, in all, with bursts of one second; beyond it the answer is 429.
    connections : int
        Maximum number of connections at a time. Who comes when there are so many is refused with 503; who
        came before is served. At most as many as the system lets the process open files.
    per_address : int, optional
        Maximum number of connections from one address, an IPv6 network of 64 bits counting as one; beyond it
        the answer is 503. None behind a proxy, whose address all clients have.
    head_seconds : float
        In which the head of a request must have come, from the connection or the last answer on.
    seconds : float
        In which the rest of a request must have come.
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

    def __post_init__(self) -> None:
        for name in ("body", "waiting", "connections", "unfinished"):
            _check.integer(name, getattr(self, name), minimum=1)
        if self.per_address is not None:
            _check.integer("per_address", self.per_address, minimum=1)
        for name in ("seconds", "head_seconds"):
            _check.positive(name, getattr(self, name))
        if self.rate != math.inf:
            _check.positive("rate", self.rate)
