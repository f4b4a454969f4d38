"""The whole table, by roles, scopes and actions, against a second one that is written out by role."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, combinations
from typing import TypeVar

import pytest

from sfumato.ledger import Role
from sfumato.server.asgi import Refused
from sfumato.server.console.access.identity import PUBLIC, Identity, identity_of, put_identity
from sfumato.server.console.access.permissions import ALL_SCOPES, RULES, Action, Scope, actions_of, allowed

BY_ROLE = {
    Role.CURATOR: (
        "view_release view_schema view_reviews publish view_budget view_grants grant set_epsilon "
        "view_dataset manage_members view_log export_log verify_log"
    ),
    Role.ANALYST: "view_release view_schema dry_run ask view_own cancel_job request_budget request_review",
    Role.REVIEWER: "view_release view_schema view_reviews review",
    Role.AUDITOR: (
        "view_release view_schema view_reviews view_budget view_grants view_dataset view_log export_log "
        "verify_log"
    ),
}
BY_SCOPE = {
    Scope.READ: (
        "view_schema view_own view_reviews view_budget view_grants view_dataset view_log "
        "export_log verify_log"
    ),
    Scope.ASK: "dry_run ask cancel_job request_budget request_review",
    Scope.REVIEW: "review",
    Scope.GRANT: "grant set_epsilon manage_members",
    Scope.PUBLISH: "publish",
}


T = TypeVar("T")


def subsets(of: Iterable[T]) -> list[frozenset[T]]:
    each = list(of)
    return [frozenset(some) for size in range(len(each) + 1) for some in combinations(each, size)]


def words(lines: Iterable[str]) -> set[str]:
    return {"view_release", *chain.from_iterable(line.split() for line in lines)}


def test_every_role_with_every_scope_does_what_the_table_says_and_no_more() -> None:
    checked = 0
    for roles in subsets(Role):
        for scopes in subsets(Scope):
            by_role = words(BY_ROLE[role] for role in roles)
            by_scope = words(BY_SCOPE[scope] for scope in scopes)
            assert {str(action) for action in actions_of(roles, scopes)} == by_role & by_scope
            checked += 1
    assert checked == 16 * 32


def test_what_is_not_in_the_table_is_refused() -> None:
    assert set(RULES) == set(Action)
    for unknown in ("", "view", "VIEW_LOG", "view_log ", "delete"):
        assert not allowed(unknown, set(Role), ALL_SCOPES)
        assert not Identity(name="eve", roles=frozenset(Role), scopes=ALL_SCOPES, via="oidc").may(unknown)


def test_an_auditor_changes_nothing_and_a_scope_to_read_neither() -> None:
    reading = {action for action in Action if action.startswith("view_")} | {"export_log", "verify_log"}
    assert actions_of({Role.AUDITOR}, ALL_SCOPES) <= reading
    assert actions_of(set(Role), {Scope.READ}) == reading


def test_the_public_is_asked_to_sign_in_and_a_member_is_refused() -> None:
    assert PUBLIC.actions == {Action.VIEW_RELEASE}
    PUBLIC.require(Action.VIEW_RELEASE)
    with pytest.raises(Refused) as refused:
        PUBLIC.require(Action.ASK)
    assert refused.value.status == 401
    left = Identity(name="ada", roles=frozenset(), scopes=ALL_SCOPES, via="token")
    with pytest.raises(Refused) as refused:
        left.require(Action.ASK)
    assert refused.value.status == 403
    with pytest.raises(Refused):
        left.require("ask!")


def test_a_request_is_the_publics_until_somebody_is_recognised() -> None:
    scope: dict[str, object] = {}
    assert identity_of(scope) is PUBLIC
    ada = Identity(name="ada", roles=frozenset({Role.ANALYST}), scopes=ALL_SCOPES, via="proxy")
    put_identity(scope, ada)
    assert identity_of(scope) is ada
