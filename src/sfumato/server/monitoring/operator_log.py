"""Lines for the operator of a service: words, or one JSON object a line with the time.

>>> log = OperatorLog(print)
>>> log("stopped", "2 batches released", batches=2)
2 batches released
>>> log = OperatorLog(print, structured=True, now=lambda: 0.0)
>>> log("stopped", "2 released")
{"time": "1970-01-01T00:00:00.000Z", "level": "info", "event": "stopped", "message": "2 released"}
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import final

__all__ = ["OperatorLog"]


@final
class OperatorLog:
    """What happens to the process itself: nothing is ever said of a client or of when a report came.

    Parameters
    ----------
    say : callable
        Receives each line.
    structured : bool
        Whether lines are JSON, with time and level.
    now : callable
        Seconds since 1970.
    """

    __slots__ = ("_now", "_say", "_structured")

    def __init__(
        self, say: Callable[[str], None], *, structured: bool = False, now: Callable[[], float] = time.time
    ) -> None:
        self._say, self._structured, self._now = say, structured, now

    def __call__(self, event: str, message: str, *, level: str = "info", **facts: object) -> None:
        """Say one thing: in words, or as an object that holds them, the event's name and further facts."""
        if not self._structured:
            self._say(message)
            return
        at = datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="milliseconds")
        head = {"time": at.replace("+00:00", "Z"), "level": level, "event": event, "message": message}
        self._say(json.dumps(head | facts))

    def failure(self, event: str) -> Callable[[str], None]:
        """Return what says failures of one kind."""
        return lambda message: self(event, message, level="error")
