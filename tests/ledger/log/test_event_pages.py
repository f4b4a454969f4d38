"""Pages of a log: what is on them, what is left out, and that they do not read the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.errors import LedgerCorrupt, ParameterError
from sfumato.ledger import Ledger
from tests.ledger.tampering import tamper


def filled(ledger: Ledger) -> Ledger:
    """A ledger of eleven events."""
    for number in range(10):
        ledger.members.record_failed_login(f"eve {number}")
    return ledger


def test_pages_hold_each_event_once_the_newest_first(open_anywhere: Callable[..., Ledger]) -> None:
    events = filled(open_anywhere()).events
    pages = [events.newest(4, offset=offset) for offset in (0, 4, 8)]
    assert [event.position for page in pages for event in page] == list(range(events.count(), 0, -1))
    assert events.newest(4, offset=11) == ()


def test_kinds_are_left_out(open_anywhere: Callable[..., Ledger]) -> None:
    events = filled(open_anywhere()).events
    assert events.count(without=["login"]) == events.count() - 10 == 1
    assert [event.position for event in events.newest(3, without=["login"])] == [1]
    assert events.count(without=["login", "opened"]) == 0


def test_limits(open_ledger: Callable[..., Ledger]) -> None:
    events = open_ledger().events
    for limit, offset in ((0, 0), (1001, 0), (1, -1)):
        with pytest.raises(ParameterError, match=r"limit|offset"):
            events.newest(limit, offset=offset)


def test_what_is_on_a_page_is_checked_and_the_rest_is_not_read(
    tmp_path: Path, open_ledger: Callable[..., Ledger]
) -> None:
    path = tmp_path / "ledger"
    events = filled(open_ledger(path)).events
    tamper(path, "UPDATE event SET digest = printf('%064d', 0) WHERE position = 3")
    assert len(events.newest(8)) == 8
    with pytest.raises(LedgerCorrupt, match="an altered event 3"):
        events.newest(9)
