"""Log: what happened, event by event, without anybody's question; verification, and the signed export."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from sfumato.errors import LedgerCorrupt
from sfumato.ledger import Role
from sfumato.ledger.log.hash_chain import Event
from sfumato.server.console.access.permissions import Action
from sfumato.server.console.pages.answer import Answer, Document, Page
from sfumato.server.console.pages.screen import Screen
from sfumato.server.console.pages.visit import Visit

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["SCREENS"]

_ROWS: Final = 50
_TIMED: Final = ("draw", "commit")
"""Kinds of events that come when a computation ends."""

_NAMES: Final = {
    "opened": "ledger made",
    "version": "new version of the data",
    "charge": "charge",
    "draw": "noise drawn",
    "commit": "release stored",
    "account": "account or member",
    "review": "review",
    "login": "failed login",
}


def _show(console: Console, visit: Visit) -> Answer:
    """Show the events, the newest first; only a curator sees when noise was drawn: that depends on rows."""
    events, whole = console.ledger.events, Role.CURATOR in visit.identity.roles
    hidden = () if whole else _TIMED
    last = max(1, -(-events.count(without=hidden) // _ROWS))
    page = min(visit.page(), last)
    facts = {
        "rows": [_row(each) for each in events.newest(_ROWS, offset=(page - 1) * _ROWS, without=hidden)],
        "page": page,
        "last": last,
        "head": console.ledger.head() if whole else None,
        "key": console.ledger.public_key,
    }
    return Page(template="log.html", title="Log", facts=facts)


def _row(event: Event) -> dict[str, object]:
    body = json.loads(event.body)
    return {
        "position": event.position,
        "kind": _NAMES.get(event.kind, event.kind),
        "charge": event.charge,
        "time": body["time"],
        "by": body.get("by") or body.get("analyst") or body.get("name") or "",
        "digest": event.digest,
    }


def _verify(console: Console, _: Visit) -> Answer:
    """Check the whole chain and price every loss again."""
    try:
        found, damage = console.ledger.verify(), ""
    except LedgerCorrupt as error:
        found, damage = None, str(error)
    facts = {"verified": found, "damage": damage, "head": console.ledger.head()}
    return Page(template="verification.html", title="Verification", facts=facts)


def _export(console: Console, _: Visit) -> Answer:
    """Give the export, and remember at which head it was taken."""
    content = console.ledger.export()
    console.heads.store(console.ledger.head())
    name = f"ledger-{console.ledger.ledger_id[:8]}.jsonl"
    return Document(content=content.encode(), media_type="application/jsonl", file_name=name)


SCREENS: Final = (
    Screen(path="/log", action=Action.VIEW_LOG, show=_show),
    Screen(path="/log/verify", action=Action.VERIFY_LOG, show=_verify, method="POST"),
    Screen(path="/log/export", action=Action.EXPORT_LOG, show=_export, method="POST"),
)
