"""The members of an organisation as a ledger's events say: roles, keys, failed logins, wished budgets.

The rules stand here once: who writes an event is held to them, and so is the event when a ledger is verified.
``by=""`` is whoever holds the ledger itself, who can do all things anyway; a service always passes a name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from sfumato import _check
from sfumato.ledger.budget.budget import Budget
from sfumato.ledger.log.accounts import check_budget
from sfumato.ledger.log.key_points import is_point_of_large_order
from sfumato.ledger.log.member_events import (
    AccountSet,
    BudgetDeclined,
    BudgetRequested,
    KeySet,
    LoginFailed,
    MemberBody,
    Role,
    RolesSet,
)
from sfumato.ledger.log.words import check_line, check_name

__all__ = ["Member", "MemberRoll"]

_LET_CURATOR: Final = "let a curator do it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member of the organisation that runs a ledger.

    Attributes
    ----------
    name : str
        The member's name, as charges and signatures carry it.
    roles : frozenset of Role
        What they may do; empty for one who left.
    public_key : str or None
        The Ed25519 key that their signatures are checked with, in hexadecimal.
    failed_logins : int
        How often somebody failed to log in as them.

    Examples
    --------
    >>> from sfumato.ledger import Member, Role
    >>> Member(name="rita", roles=frozenset({Role.REVIEWER})).public_key is None
    True
    """

    name: str
    roles: frozenset[Role]
    public_key: str | None = None
    failed_logins: int = 0


@dataclass(frozen=True, slots=True)
class _Key:
    """Whose a key is, who registered it, and whether it was revoked."""

    name: str
    registered_by: str
    revoked: bool = False


class MemberRoll:
    """What the events about members add up to.

    Parameters
    ----------
    budget : Budget
        The dataset's: analysts' are of its kind.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._roles: dict[str, frozenset[Role]] = {}
        self._current: dict[str, str] = {}
        self._keys: dict[str, _Key] = {}
        self._failed: dict[str, int] = {}
        self._accounts: set[str] = set()
        self._wished: dict[str, BudgetRequested] = {}

    def members(self) -> tuple[Member, ...]:
        """Return all who ever had a role, by name."""
        return tuple(self._member(name) for name in sorted(self._roles))

    def wishes(self) -> tuple[BudgetRequested, ...]:
        """Return the requests for budgets that are not answered, by name."""
        return tuple(self._wished[name] for name in sorted(self._wished))

    def has_role(self, name: str, role: Role) -> bool:
        """Whether a member has a role now."""
        return role in self._roles.get(name, frozenset())

    def require(self, parameter: str, name: str, *roles: Role) -> None:
        """Refuse one who has none of some roles."""
        if not any(self.has_role(name, role) for role in roles):
            rule = f"be a {' or '.join(role.value for role in roles)}"
            _check.refuse(parameter, rule, name, "let a curator give the role, by members.set_roles")

    def key_of(self, name: str) -> str | None:
        """Return the key that a member signs with now."""
        return self._current.get(name)

    def key_was_revoked(self, public_key: str) -> bool:
        """Whether a key was taken back: what it signed is no longer trusted."""
        return self._keys[public_key].revoked

    def registrar_of(self, public_key: str) -> str:
        """Return who registered a key; "" for whoever holds the ledger."""
        return self._keys[public_key].registered_by

    def check(self, body: MemberBody) -> None:
        """Refuse an event that breaks a rule.

        Raises
        ------
        ParameterError
            Which rule, and for whom.
        """
        match body:
            case RolesSet():
                self._check_roles(body)
            case KeySet():
                self._check_key(body)
            case AccountSet():
                check_name("analyst", body.analyst)
                check_line("reason", body.reason)
                if body.budget is not None:
                    check_budget(body.budget, self._budget)
                self._check_curator(body.by)
            case BudgetRequested():
                self._check_wish(body)
            case BudgetDeclined():
                if body.analyst not in self._wished:
                    rule = "be one whose request for a budget is open"
                    _check.refuse("analyst", rule, body.analyst, "members.budget_requests() lists them")
                check_line("reason", body.reason, needed=True)
                self._check_curator(body.by)
            case LoginFailed():
                check_name("name", body.name)

    def take(self, body: MemberBody) -> None:
        """Add what an event says."""
        match body:
            case RolesSet():
                self._roles[body.name] = frozenset(body.roles)
            case KeySet(public_key=None):
                public_key = self._current.pop(body.name)
                self._keys[public_key] = _Key(body.name, self._keys[public_key].registered_by, revoked=True)
            case KeySet(public_key=str() as public_key):
                self._current[body.name] = public_key
                self._keys[public_key] = _Key(body.name, body.by)
            case AccountSet():
                self._accounts.add(body.analyst)
                self._wished.pop(body.analyst, None)
            case BudgetRequested():
                self._wished[body.analyst] = body
            case BudgetDeclined():
                del self._wished[body.analyst]
            case LoginFailed():
                self._failed[body.name] = self._failed.get(body.name, 0) + 1

    def _member(self, name: str) -> Member:
        return Member(
            name=name,
            roles=self._roles[name],
            public_key=self._current.get(name),
            failed_logins=self._failed.get(name, 0),
        )

    def _check_curator(self, by: str) -> None:
        if by:
            self.require("by", by, Role.CURATOR)

    def _check_roles(self, body: RolesSet) -> None:
        check_name("name", body.name)
        if list(body.roles) != sorted(set(body.roles), key=lambda role: role.value):
            _check.refuse("roles", "be sorted, each once", [r.value for r in body.roles], "pass a set")
        self._check_curator(body.by)
        if body.by == body.name and Role.CURATOR not in body.roles:
            rule = "be another curator than the one who is to be none"
            _check.refuse("by", rule, body.by, "so that one is left: let another curator do it")

    def _check_key(self, body: KeySet) -> None:
        if body.name not in self._roles:
            _check.refuse("name", "be a member's", check_name("name", body.name), "give them a role first")
        self._check_curator(body.by)
        if body.public_key is None:
            if body.name not in self._current:
                _check.refuse("name", "be that of a member with a key", body.name, "there is none to revoke")
            return
        if not re.fullmatch("[0-9a-f]{64}", body.public_key):
            remedy = "pass public_key.public_bytes_raw().hex()"
            _check.refuse("public_key", "be 64 hexadecimal digits", body.public_key, remedy)
        if not is_point_of_large_order(body.public_key):
            rule = "be an Ed25519 key under which nobody else can sign"
            _check.refuse("public_key", rule, body.public_key, "make a new one")
        if body.public_key in self._keys:
            # One person under two names would sign their own; and a revoked key may be in others' hands.
            rule = "be a key that was never registered before, for anybody"
            _check.refuse("public_key", rule, body.public_key, "make a new one")

    def _check_wish(self, body: BudgetRequested) -> None:
        check_name("analyst", body.analyst)
        if body.analyst not in self._accounts and not self.has_role(body.analyst, Role.ANALYST):
            rule = "be one with an account, or an analyst by role"
            _check.refuse("analyst", rule, body.analyst, _LET_CURATOR)
        check_budget(body.budget, self._budget)
        check_line("purpose", body.purpose, needed=True)
