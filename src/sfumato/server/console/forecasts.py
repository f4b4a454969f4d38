"""The forecast of all accounts as it was last made: it reads every charge of the ledger."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, final

from sfumato.ledger import Ledger
from sfumato.server.console.asking.forecast import AccountForecast, forecast

__all__ = ["DAYS", "Forecasts"]

DAYS: Final = 30
"""Of whose charges the rate is taken."""
_FRESH: Final = timedelta(minutes=1)


def _utc_now() -> datetime:
    return datetime.now(UTC)


@final
class Forecasts:
    """Makes it anew once the ledger has grown, or a minute is over: for one visitor at a time.

    Parameters
    ----------
    ledger : Ledger
    now : callable
        The time, with its zone.
    """

    def __init__(self, ledger: Ledger, *, now: Callable[[], datetime] = _utc_now) -> None:
        self._ledger, self._now, self._lock = ledger, now, threading.Lock()
        self._made: tuple[str, datetime, tuple[AccountForecast, ...]] | None = None

    def accounts(self) -> tuple[AccountForecast, ...]:
        """Return the forecast of the dataset and of each analyst."""
        with self._lock:
            digest, now = self._ledger.head().digest, self._now()
            if self._made is None or self._made[0] != digest or now - self._made[1] >= _FRESH:
                self._made = digest, now, forecast(self._ledger, now=now, days=DAYS)
            return self._made[2]
