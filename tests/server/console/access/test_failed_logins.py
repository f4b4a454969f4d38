"""Failed attempts become events of a real ledger, and stay few however many there are."""

from __future__ import annotations

import pytest

from sfumato.errors import LedgerUnavailable
from sfumato.ledger import Budget, Dataset, Ledger, Role
from sfumato.privacy import Neighboring
from sfumato.server.console.access.failed_logins import FailedLogins
from sfumato.server.console.access.member_roles import MemberRoles


def opened() -> Ledger:
    return Ledger.open(
        None,
        budget=Budget.pure(epsilon=1.0),
        privacy_unit="person_id",
        neighboring=Neighboring.ADD_REMOVE,
        dataset=Dataset(schema="people(age BIGINT)", fingerprint=lambda key: "0" * 64),
    )


def test_attempts_are_events_and_a_flood_of_them_is_not() -> None:
    now = 0.0
    with opened() as ledger:
        ledger.members.set_roles("ada", {Role.ANALYST})
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


@pytest.mark.parametrize("role", [Role.CURATOR])
def test_roles_are_those_of_this_moment(role: Role) -> None:
    with opened() as ledger:
        roles = MemberRoles(ledger.members)
        assert roles.of("ada") == frozenset()
        ledger.members.set_roles("ada", {Role.ANALYST, role})
        assert roles.of("ada") == {Role.ANALYST, role}
        ledger.members.set_roles("ada", ())
        assert roles.of("ada") == frozenset()
