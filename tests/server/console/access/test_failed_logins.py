"""Failed attempts become events of a real ledger, and stay few however many there are."""

from __future__ import annotations

from sfumato.errors import LedgerUnavailable
from sfumato.ledger import Role
from sfumato.server.console.access.failed_logins import FailedLogins
from sfumato.server.console.access.member_roles import MemberRoles
from tests.server.console.setting import opened_ledger


def test_attempts_are_events_and_a_flood_of_them_is_not() -> None:
    now = 0.0
    with opened_ledger() as ledger:
        failed = FailedLogins(ledger.members.record_failed_login, now=lambda: now)
        events = ledger.head().position
        assert sum(failed.note("ada") for _ in range(100)) == 5
        assert ledger.members.of("ada").failed_logins == 5
        assert sum(failed.note("") for _ in range(100)) == 5
        assert sum(failed.note(f"name {number}") for number in range(100)) == 10  # of 20 in all
        now = 600.0
        assert [failed.note("ada") for _ in range(2)] == [True, False]
        assert ledger.head().position == events + 21
        for second in range(86_400):
            now = 700.0 + second
            failed.note(f"name {second % 50}")
        assert ledger.head().position <= events + 21 + 1_460
        assert failed.dropped == 95 + 95 + 90 + 1 + 86_400 - (ledger.head().position - events - 21)


def test_a_ledger_that_cannot_be_written_lets_nobody_in_and_stops_nothing() -> None:
    def record(name: str) -> None:
        raise LedgerUnavailable("the disk is full")

    failed = FailedLogins(record, now=lambda: 0.0)
    assert not failed.note("ada")
    assert failed.dropped == 1


def test_roles_are_those_of_this_moment() -> None:
    with opened_ledger() as ledger:
        roles = MemberRoles(ledger.members)
        assert roles.of("ada") == {Role.ANALYST}
        assert roles.of("eve") == frozenset()
        ledger.members.set_roles("ada", {Role.ANALYST, Role.AUDITOR})
        assert roles.of("ada") == {Role.ANALYST, Role.AUDITOR}
        ledger.members.set_roles("ada", ())
        assert roles.of("ada") == frozenset()
