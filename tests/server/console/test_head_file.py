"""The last head that somebody took away, with its time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.server.console.office import Office


def test_the_last_head_is_kept_with_its_time(office: Office) -> None:
    heads, ledger = office.console.heads, office.console.ledger
    assert heads.last() is None
    heads.store(ledger.head())
    ledger.members.record_failed_login("eve")
    heads.store(ledger.head())
    last = heads.last()
    assert last is not None
    assert last.head == ledger.head()
    assert abs(datetime.now(UTC) - last.time) < timedelta(days=1)
