"""Equal requests of one process take turns, so that the second finds what the first committed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, RLock
from typing import Any, Final

__all__ = ["one_at_a_time"]


class _Turns:
    """The requests that are being answered, each with a lock and how many threads have it or wait for it."""

    def __init__(self) -> None:
        self.guard = Lock()
        self.locks: dict[str, tuple[Any, int]] = {}  # Any: a re-entrant lock has no public type

    def join(self, request: str) -> Any:
        """Return the lock of a request, and count one more thread."""
        with self.guard:
            lock, threads = self.locks.get(request, (RLock(), 0))
            self.locks[request] = lock, threads + 1
            return lock

    def leave(self, request: str) -> None:
        """Count one thread less, and forget a request that nobody asks any more."""
        with self.guard:
            lock, threads = self.locks.pop(request, (RLock(), 0))
            if threads > 1:
                self.locks[request] = lock, threads - 1


_TURNS: Final = _Turns()
if hasattr(os, "register_at_fork"):  # in a forked child no thread is left that would open a lock
    os.register_at_fork(after_in_child=lambda: _Turns.__init__(_TURNS))


@contextmanager
def one_at_a_time(request: str) -> Iterator[None]:
    """Wait until no other thread answers the same request.

    Parameters
    ----------
    request : str
        Its key.

    Examples
    --------
    >>> with one_at_a_time("marginals of age"):
    ...     answer = 1
    """
    lock = _TURNS.join(request)
    try:
        with lock:
            yield
    finally:
        _TURNS.leave(request)
