"""Members: who has which role, whose key signs, and how often somebody failed to sign in as them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sfumato.ledger import Role
from sfumato.server.console.access.permissions import Action
from sfumato.server.console.pages.answer import Answer, Page, Redirect
from sfumato.server.console.pages.screen import Screen
from sfumato.server.console.pages.visit import Visit

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["SCREENS"]

_BACK: Final = Redirect(path="/members")


def _show(console: Console, visit: Visit) -> Answer:
    """Show all members."""
    members = console.ledger.members.all()
    facts = {"members": members, "roles": tuple(Role), "named": visit.query.get("name", "")}
    chosen = next((member for member in members if member.name == facts["named"]), None)
    return Page(template="members.html", title="Members", facts={**facts, "chosen": chosen})


def _set_roles(console: Console, visit: Visit) -> Answer:
    """Give a member the ticked roles and no others."""
    name = visit.line("name", "say who")
    roles = {role for role in Role if visit.text(f"role-{role.value}")}
    console.ledger.members.set_roles(name, roles, by=visit.identity.name)
    return _BACK


def _register(console: Console, visit: Visit) -> Answer:
    """Register the public key that a member signs with."""
    name, key = visit.line("name", "say whose"), visit.line("public_key", "'sfumato review keygen' prints it")
    console.ledger.members.register_key(name, key, by=visit.identity.name)
    return _BACK


def _revoke(console: Console, visit: Visit) -> Answer:
    """Revoke a member's key."""
    console.ledger.members.revoke_key(visit.line("name", "say whose"), by=visit.identity.name)
    return _BACK


SCREENS: Final = (
    Screen(path="/members", action=Action.MANAGE_MEMBERS, show=_show),
    Screen(path="/members/roles", action=Action.MANAGE_MEMBERS, show=_set_roles, method="POST", again=_show),
    Screen(path="/members/key", action=Action.MANAGE_MEMBERS, show=_register, method="POST", again=_show),
    Screen(path="/members/revoke", action=Action.MANAGE_MEMBERS, show=_revoke, method="POST", again=_show),
)
