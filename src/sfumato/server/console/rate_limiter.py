"""How often something may happen for each of many: addresses, members, names that fail to sign in.

>>> now = 0.0
>>> limiter = RateLimiter(2.0, burst=3, now=lambda: now)
>>> [limiter.wait("192.0.2.1") for _ in range(4)], limiter.wait("192.0.2.2")
([0.0, 0.0, 0.0, 0.5], 0.0)
>>> now = 0.5
>>> limiter.wait("192.0.2.1"), limiter.wait("192.0.2.1")
(0.0, 0.5)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, final

from sfumato import _check

__all__ = ["RateLimiter"]

_KEYS: Final = 1 << 16


@final
class RateLimiter:
    """Lets each key pass so often a second, and a burst of it at once.

    Parameters
    ----------
    rate : float
        How often a second in the long run.
    burst : int
        How often at once, after a pause.
    keys : int
        Of how many keys it knows when they passed; beyond it the one that came longest ago is forgotten.
    now : callable
        Seconds of a clock that never goes back.

    Notes
    -----
    For each key it knows one time: when all that passed would have been due at the rate. Not for several
    threads.
    """

    def __init__(
        self, rate: float, *, burst: int, keys: int = _KEYS, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = 1 / _check.positive("rate", rate)
        self._ahead = self._seconds * (_check.integer("burst", burst, minimum=1) - 1)
        self._keys = _check.integer("keys", keys, minimum=1)
        self._due: dict[str, float] = {}
        self._now = now

    def wait(self, key: str) -> float:
        """Let one pass, or return the seconds after which it may be tried again.

        Parameters
        ----------
        key : str

        Returns
        -------
        float
            0 if it passed.
        """
        now = self._now()
        due = max(now, self._due.get(key, now))
        if due - now > self._ahead:
            return due - now - self._ahead
        self._due.pop(key, None)
        self._forget(now)
        self._due[key] = due + self._seconds
        return 0.0

    def _forget(self, now: float) -> None:
        """Forget the keys that came first, if their time is over or there are too many."""
        while self._due:
            first = next(iter(self._due))
            if self._due[first] > now and len(self._due) < self._keys:
                return
            del self._due[first]
