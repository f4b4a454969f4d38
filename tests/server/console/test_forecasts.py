"""The forecast is made once for a state of the ledger, and anew for another or a minute later."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sfumato.privacy import Laplace
from sfumato.server.console.forecasts import Forecasts
from tests.server.console.setting import opened_ledger


def test_it_is_made_anew_when_something_changed() -> None:
    now = [datetime.now(UTC)]
    with opened_ledger() as ledger:
        forecasts = Forecasts(ledger, now=lambda: now[0])
        first = forecasts.accounts()
        assert forecasts.accounts() is first
        ledger.charge(Laplace(4.0), delta=0.0)
        charged = forecasts.accounts()
        assert (first[0].charges, charged[0].charges) == (0, 1)
        now[0] += timedelta(seconds=59)
        assert forecasts.accounts() is charged
        now[0] += timedelta(seconds=1)
        assert forecasts.accounts() is not charged
