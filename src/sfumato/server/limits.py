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
    """Bounds on what comes, whoever sends it: nothing here is stored by address.

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
        Maximum number of connections at a time; beyond it the answer is 503.
    seconds : float
        In which a request must have come, and after which a connection without one is cut.

    Notes
    -----
    Memory is at most that of one ``body`` for each of the ``connections``, beside what waits.
    """

    body: int = 1 << 20
    waiting: int = 20_000
    rate: float = math.inf
    connections: int = 500
    seconds: float = 30.0

    def __post_init__(self) -> None:
        for name in ("body", "waiting", "connections"):
            _check.integer(name, getattr(self, name), minimum=1)
        _check.positive("seconds", self.seconds)
        if self.rate != math.inf:
            _check.positive("rate", self.rate)
