"""Events about people: who has which role, whose key signs, whose login failed, who asked for a budget.

An event that gives a right is of the kind ``account``, as a grant is: on a server only the curator's role may
write that kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Final, TypeAlias

from sfumato._wire import TEXT, Field, Names, Record, optional, sequence
from sfumato.ledger.budget.budget import BUDGET, Budget

__all__ = [
    "ACCOUNT_RECORDS",
    "BUDGET_REQUEST_RECORD",
    "LOGIN_RECORD",
    "MEMBER_BODIES",
    "AccountSet",
    "BudgetDeclined",
    "BudgetRequested",
    "KeySet",
    "LoginFailed",
    "MemberBody",
    "Role",
    "RolesSet",
]


class Role(Enum):
    """What a member of an organisation may do with a ledger.

    Examples
    --------
    >>> Role("reviewer")
    <Role.REVIEWER: 'reviewer'>
    """

    CURATOR = "curator"
    """Grants budgets and roles, registers keys, publishes."""
    ANALYST = "analyst"
    """Asks within a budget, and asks for a release to be reviewed."""
    REVIEWER = "reviewer"
    """Approves releases with a signature, or returns them."""
    AUDITOR = "auditor"
    """Looks at the log and verifies it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSet:
    """An analyst's account that was opened, given another budget, or, without one, closed."""

    kind: ClassVar[str] = "account"

    analyst: str
    budget: Budget | None
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolesSet:
    """All the roles that a member has from now on; none of them for one who left."""

    kind: ClassVar[str] = "account"

    name: str
    roles: tuple[Role, ...]
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySet:
    """The public key by which a member signs from now on; None if the last one was revoked."""

    kind: ClassVar[str] = "account"

    name: str
    public_key: str | None
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetDeclined:
    """An analyst's request for a budget that was declined."""

    kind: ClassVar[str] = "account"

    analyst: str
    reason: str
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRequested:
    """An analyst asked for a budget."""

    kind: ClassVar[str] = "budget_request"

    analyst: str
    budget: Budget
    purpose: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginFailed:
    """Somebody who is not known to be this member tried to log in as them."""

    kind: ClassVar[str] = "login"

    name: str


MemberBody: TypeAlias = AccountSet | RolesSet | KeySet | BudgetDeclined | BudgetRequested | LoginFailed
MEMBER_BODIES: Final = (AccountSet, RolesSet, KeySet, BudgetDeclined, BudgetRequested, LoginFailed)

_BY: Final = {"by": ""}
_ROLES: Final = sequence(Names("a role", {role.value: role for role in Role}))

ACCOUNT_RECORDS: Final[dict[str, tuple[type[MemberBody], Record[Any]]]] = {
    "roles": (RolesSet, Record("roles", RolesSet, {"name": TEXT, "roles": _ROLES, "by": TEXT}, _BY)),
    "public_key": (
        KeySet,
        Record("a key", KeySet, {"name": TEXT, "public_key": optional(TEXT), "by": TEXT}, _BY),
    ),
    "declined": (
        BudgetDeclined,
        Record(
            "a refusal", BudgetDeclined, {"declined": Field("analyst", TEXT), "reason": TEXT, "by": TEXT}, _BY
        ),
    ),
    "budget": (
        AccountSet,
        Record(
            "an account",
            AccountSet,
            {"analyst": TEXT, "budget": optional(BUDGET), "by": TEXT, "reason": TEXT},
            {"by": "", "reason": ""},
        ),
    ),
}
"""What an event of the kind ``account`` may hold, by a field that only this one has."""

BUDGET_REQUEST_RECORD: Final[Record[BudgetRequested]] = Record(
    "a request for a budget", BudgetRequested, {"analyst": TEXT, "budget": BUDGET, "purpose": TEXT}
)
LOGIN_RECORD: Final[Record[LoginFailed]] = Record("a failed login", LoginFailed, {"name": TEXT})
