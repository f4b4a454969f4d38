"""Failed attempts to sign in, as events of the ledger, and so few that nobody fills its log.

>>> written = []
>>> failed = FailedLogins(written.append, now=lambda: 0.0)
>>> [failed.note("ada") for _ in range(7)].count(True), failed.note(""), written[-2:], failed.dropped
(5, True, ['ada', '(unknown)'], 2)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, final

from sfumato.errors import SfumatoError
from sfumato.server.console.rate_limiter import RateLimiter

__all__ = ["UNKNOWN", "FailedLogins"]

UNKNOWN: Final = "(unknown)"
"""Under this name go attempts that name nobody."""
_NAME_RATE, _NAME_BURST = 1 / 600, 5
_RATE, _BURST = 1 / 60, 20


@final
class FailedLogins:
    """Records failed attempts: of one name five at once and then one in ten minutes.

    Of all names together twenty at once, and then one a minute.

    Parameters
    ----------
    record : callable
        `Members.record_failed_login` of the ledger.
    now : callable
        Seconds of a clock that never goes back.

    Notes
    -----
    At most 1,460 events a day. Others are counted here, and only here.
    """

    def __init__(self, record: Callable[[str], None], *, now: Callable[[], float] = time.monotonic) -> None:
        self._record = record
        self._names = RateLimiter(_NAME_RATE, burst=_NAME_BURST, now=now)
        self._all = RateLimiter(_RATE, burst=_BURST, now=now)
        self._lock = threading.Lock()
        self.dropped = 0
        """How many were not recorded."""

    def note(self, name: str) -> bool:
        """Record an attempt, unless there were too many.

        Parameters
        ----------
        name : str
            The member whose token or name was used; empty for none.

        Returns
        -------
        bool
            Whether it is in the ledger.
        """
        with self._lock:
            recorded = not self._names.wait(name) and not self._all.wait("")
        if recorded:
            try:
                self._record(name or UNKNOWN)
            except SfumatoError:  # whoever failed to sign in is refused, also where nothing can be written
                pass
            else:
                return True
        self.dropped += 1
        return False
