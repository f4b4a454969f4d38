"""What each role may do, and by which scope of a token: one table, and whatever is not in it is refused.

>>> from sfumato.ledger import Role
>>> allowed(Action.ASK, {Role.ANALYST}, {Scope.ASK})
True
>>> allowed(Action.ASK, {Role.CURATOR}, set(Scope)), allowed(Action.ASK, {Role.ANALYST}, {Scope.READ})
(False, False)

Roles add up: a member with two of them may do what either may. No role includes another: a curator asks
nothing, and an auditor changes nothing. That nobody reviews what they asked is not decided here but in the
ledger, which compares names.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from sfumato.ledger.log.member_events import Role

__all__ = ["ALL_SCOPES", "RULES", "Action", "Rule", "Scope", "actions_of", "allowed"]


class Scope(StrEnum):
    """What a token or a sign-in may be used for; the roles of its member bound it further.

    Examples
    --------
    >>> Scope("read").value
    'read'
    """

    READ = "read"
    """See all that the member's roles may see."""
    ASK = "ask"
    """Spend an analyst's budget, and ask for budgets and reviews."""
    REVIEW = "review"
    """Comment on releases, approve and return them."""
    GRANT = "grant"
    """Decide about budgets, roles and keys."""
    PUBLISH = "publish"
    """Publish approved releases, and withdraw them."""


ALL_SCOPES: Final = frozenset(Scope)


class Action(StrEnum):
    """What a request of the console does.

    Examples
    --------
    >>> Action("dry_run").value
    'dry_run'
    """

    VIEW_RELEASE = "view_release"
    """A published release, and the tables of published releases."""
    VIEW_SCHEMA = "view_schema"
    """Tables, columns, public domains, and who is protected: what an analyst writes a query from."""
    DRY_RUN = "dry_run"
    """A query on rows that are drawn from the public domain."""
    ASK = "ask"
    """A query that is charged, and its price before."""
    VIEW_OWN = "view_own"
    """One's own queries, jobs, releases, account and requests."""
    CANCEL_JOB = "cancel_job"
    """Cancel a query of one's own."""
    REQUEST_BUDGET = "request_budget"
    REQUEST_REVIEW = "request_review"
    VIEW_REVIEWS = "view_reviews"
    """The queue of reviews, and the releases in it."""
    REVIEW = "review"
    """Approve, return or comment on a release of somebody else."""
    PUBLISH = "publish"
    """Publish or withdraw a release."""
    VIEW_BUDGET = "view_budget"
    """Spent and left of the dataset and of each analyst."""
    VIEW_GRANTS = "view_grants"
    """Accounts, renewals and open requests."""
    GRANT = "grant"
    """Grant an analyst a budget, or decline a request."""
    SET_EPSILON = "set_epsilon"
    """Risk and error as epsilon moves."""
    VIEW_DATASET = "view_dataset"
    """Schema, unit, bounds and public domains as they were declared."""
    MANAGE_MEMBERS = "manage_members"
    """Give roles, and register and revoke keys."""
    VIEW_LOG = "view_log"
    EXPORT_LOG = "export_log"
    VERIFY_LOG = "verify_log"


@dataclass(frozen=True, slots=True)
class Rule:
    """Who may do one thing.

    Parameters
    ----------
    roles : frozenset of Role or None
        Any of these; None for everybody, whoever they are.
    scope : Scope or None
        What a token must be for besides; None where nothing is needed.

    Examples
    --------
    >>> RULES[Action.VIEW_RELEASE]
    Rule(roles=None, scope=None)
    """

    roles: frozenset[Role] | None
    scope: Scope | None


def _of(scope: Scope, *roles: Role) -> Rule:
    return Rule(frozenset(roles), scope)


_CURATOR, _ANALYST, _REVIEWER, _AUDITOR = Role.CURATOR, Role.ANALYST, Role.REVIEWER, Role.AUDITOR

RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        Action.VIEW_RELEASE: Rule(None, None),
        Action.VIEW_SCHEMA: _of(Scope.READ, _CURATOR, _ANALYST, _REVIEWER, _AUDITOR),
        Action.DRY_RUN: _of(Scope.ASK, _ANALYST),
        Action.ASK: _of(Scope.ASK, _ANALYST),
        Action.VIEW_OWN: _of(Scope.READ, _ANALYST),
        Action.CANCEL_JOB: _of(Scope.ASK, _ANALYST),
        Action.REQUEST_BUDGET: _of(Scope.ASK, _ANALYST),
        Action.REQUEST_REVIEW: _of(Scope.ASK, _ANALYST),
        Action.VIEW_REVIEWS: _of(Scope.READ, _CURATOR, _REVIEWER, _AUDITOR),
        Action.REVIEW: _of(Scope.REVIEW, _REVIEWER),
        Action.PUBLISH: _of(Scope.PUBLISH, _CURATOR),
        Action.VIEW_BUDGET: _of(Scope.READ, _CURATOR, _AUDITOR),
        Action.VIEW_GRANTS: _of(Scope.READ, _CURATOR, _AUDITOR),
        Action.GRANT: _of(Scope.GRANT, _CURATOR),
        Action.SET_EPSILON: _of(Scope.GRANT, _CURATOR),
        Action.VIEW_DATASET: _of(Scope.READ, _CURATOR, _AUDITOR),
        Action.MANAGE_MEMBERS: _of(Scope.GRANT, _CURATOR),
        Action.VIEW_LOG: _of(Scope.READ, _CURATOR, _AUDITOR),
        Action.EXPORT_LOG: _of(Scope.READ, _CURATOR, _AUDITOR),
        Action.VERIFY_LOG: _of(Scope.READ, _CURATOR, _AUDITOR),
    }
)
"""Action by action, who may do it."""


def allowed(action: Action | str, roles: Set[Role], scopes: Set[str]) -> bool:
    """Return whether a member with these roles may do this, by a token with these scopes.

    Parameters
    ----------
    action : Action
        Whatever has no rule is refused.
    roles : set of Role
        The member's, as the ledger says.
    scopes : set of str
        The token's, or those of the sign-in.

    Returns
    -------
    bool

    Examples
    --------
    >>> allowed("view_release", set(), set()), allowed("delete_everything", set(Role), ALL_SCOPES)
    (True, False)
    """
    rule = RULES.get(action)
    if rule is None:
        return False
    by_role = rule.roles is None or not rule.roles.isdisjoint(roles)
    return by_role and (rule.scope is None or rule.scope in scopes)


def actions_of(roles: Set[Role], scopes: Set[str]) -> frozenset[Action]:
    """Return all that a member may do: what a page offers them.

    Parameters
    ----------
    roles : set of Role
    scopes : set of str

    Returns
    -------
    frozenset of Action

    Examples
    --------
    >>> sorted(actions_of({Role.REVIEWER}, {Scope.REVIEW}))
    [<Action.REVIEW: 'review'>, <Action.VIEW_RELEASE: 'view_release'>]
    """
    return frozenset(action for action in Action if allowed(action, roles, scopes))
