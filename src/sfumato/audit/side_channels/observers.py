"""Observers of single runs: how long a run takes, and how much memory.

An observer is started before a run and stopped after it, and gives one number or text: an event of the audit
like any part of the output. `sfumato.audit.audit` takes observers, or their names, in ``observe``.
"""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Callable, Collection
from typing import Any, Final, Protocol, final, runtime_checkable

import numpy as np

from sfumato import _check
from sfumato.audit.side_channels.random_state import RANDOM_STATE, RandomStateObserver

__all__ = ["OBSERVABLE", "MemoryObserver", "Observer", "TimeObserver", "as_observers"]

_TIME: Final = "time"
_MEMORY: Final = "memory"
OBSERVABLE: Final = (_TIME, _MEMORY, RANDOM_STATE)
"""What can be observed by name."""
_INNERMOST: Final = {_TIME: 2, _MEMORY: 1}


@runtime_checkable
class Observer(Protocol):
    """Sees something of a run besides its output; one of your own may be passed to `audit`.

    Examples
    --------
    >>> class Queries:
    ...     observes = name = "queries"
    ...     sent = 0
    ...
    ...     def start(self):
    ...         self.before = self.sent
    ...
    ...     def stop(self):
    ...         return self.sent - self.before
    >>> isinstance(Queries(), Observer)
    True
    """

    @property
    def observes(self) -> str:
        """What the report says was observed, such as ``"time"``."""

    @property
    def name(self) -> str:
        """What an event is about, such as ``"time in ns"``."""

    def start(self) -> None:
        """Begin, right before a run."""

    def stop(self) -> float | str:
        """End, right after it, and return what was seen."""


@final
class TimeObserver:
    """How long a run takes, by a clock.

    Parameters
    ----------
    clock : callable
        To nanoseconds: `time.perf_counter_ns`, which a caller can read too, or `time.process_time_ns`, which
        other work on the machine disturbs less.

    Examples
    --------
    >>> ticks = iter([100, 350])
    >>> observer = TimeObserver(clock=lambda: next(ticks))
    >>> observer.start()
    >>> observer.stop()
    250
    """

    observes: str = _TIME
    name: str = "time in ns"

    def __init__(self, clock: Callable[[], int] | None = None) -> None:
        self._clock = time.perf_counter_ns if clock is None else clock
        self._started = 0

    def start(self) -> None:
        """Read the clock."""
        self._started = self._clock()

    def stop(self) -> int:
        """Return the nanoseconds since.

        Returns
        -------
        int
        """
        return self._clock() - self._started


@final
class MemoryObserver:
    """How much memory a run holds at its peak, as `tracemalloc` counts it: what Python and NumPy allocate.

    Tracing makes runs slower, which a time that is observed beside it includes.

    Examples
    --------
    >>> observer = MemoryObserver()
    >>> observer.start()
    >>> len(bytes(100_000))
    100000
    >>> 100_000 < observer.stop() < 200_000
    True
    """

    observes: str = _MEMORY
    name: str = "memory in bytes"

    def __init__(self) -> None:
        self._before = 0
        self._traced = False

    def start(self) -> None:
        """Trace from here."""
        self._traced = tracemalloc.is_tracing()
        if not self._traced:
            tracemalloc.start()
        tracemalloc.reset_peak()
        self._before = tracemalloc.get_traced_memory()[0]

    def stop(self) -> int:
        """Return the bytes at the peak, above what was held at the start.

        Returns
        -------
        int
        """
        peak = tracemalloc.get_traced_memory()[1] - self._before
        if not self._traced:
            tracemalloc.stop()
        return peak


def as_observers(observe: object) -> list[Any]:
    """Return observers from names of `OBSERVABLE` and observers, that of time innermost.

    Raises
    ------
    ParameterError
        If there is anything else in it.
    """
    listing = isinstance(observe, Collection) and not isinstance(observe, str)
    found: list[Any] = []
    for each in list(observe) if isinstance(observe, Collection) and listing else [None]:
        if each == RANDOM_STATE:
            found += [RandomStateObserver(np.random), RandomStateObserver(random)]
        elif isinstance(each, str) and each in OBSERVABLE:
            found.append(TimeObserver() if each == _TIME else MemoryObserver())
        elif isinstance(each, Observer) and not isinstance(each, type):
            found.append(each)
        else:
            _refuse(observe)
    return sorted(found, key=lambda observer: _INNERMOST.get(observer.observes, 0))


def _refuse(observe: object) -> None:
    listed = ", ".join(map(repr, OBSERVABLE))
    rule = f"hold some of {listed}, or observers"
    _check.refuse("observe", rule, observe, "write observe=['time'], or leave it out")
