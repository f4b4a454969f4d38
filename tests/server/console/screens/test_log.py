"""The log: every event without anybody's question, verified, and exported by those who may."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from sfumato.ledger import LedgerExport
from tests.server.console.office import MEMBERS, Office


def test_events_are_shown_without_questions(office: Office) -> None:
    page = office.get("carl", "/log").text
    head = office.console.ledger.head()
    assert head.digest in page
    assert page.count('<th scope="row">') == head.position
    assert "noise drawn" in page
    assert "ada" in page
    for secret in ("SELECT", "COUNT", "a report"):
        assert secret not in page


def test_an_auditor_does_not_see_when_a_computation_ended(office: Office) -> None:
    page = office.get("otto", "/log").text
    head = office.console.ledger.head()
    assert head.digest not in page
    assert page.count('<th scope="row">') == head.position - 2
    assert "noise drawn" not in page
    assert "release stored" not in page


def test_a_long_log_is_shown_in_pages(office: Office) -> None:
    for number in range(100):
        office.console.ledger.members.record_failed_login(f"eve {number}")
    assert 'rel="next"' in office.get("otto", "/log").text
    last = office.get("otto", "/log?page=3").text
    assert "Page 3 of 3" in last
    assert "ledger made" in last
    for odd in ("0", "-1", "x", "99999999999", "٣"):
        assert "Page 1 of 3" in office.get("otto", f"/log?page={odd}").text or odd == "99999999999"


def test_it_is_verified_and_exported(office: Office) -> None:
    assert "the chain is unbroken" in office.post("otto", "/log/verify").text
    assert office.console.heads.last() is None
    sent = office.post("otto", "/log/export")
    assert sent.headers["content-disposition"].startswith("attachment; ")
    exported = LedgerExport.parse(sent.text)
    ledger = office.console.ledger
    assert exported.verify(public_key=ledger.public_key).sound
    kept = office.console.heads.last()
    assert kept is not None
    assert kept.head == ledger.head()


def test_damage_is_said(office: Office) -> None:
    path = office.console.settings.ledger
    with closing(sqlite3.connect(path)) as database, database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f'DROP TRIGGER "{name}"')
        database.execute("UPDATE event SET digest = printf('%064d', 0) WHERE position = 3")
    reply = office.post("otto", "/log/verify")
    assert reply.status == 503
    assert "the chain is unbroken" not in reply.text
    assert "unbroken chain of events, got a break at event 3" in office.failures.pop()


def test_no_one_else_may(office: Office) -> None:
    for name in ("", *MEMBERS):
        allowed = name in {"carl", "otto"}
        for path in ("/log/verify", "/log/export"):
            assert office.post(name, path).status == (200 if allowed else 403), (name, path)
        assert office.get(name, "/log").status == (200 if allowed else 303 if not name else 403)
