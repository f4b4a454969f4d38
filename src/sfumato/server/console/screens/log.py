"""Log: what happened, event by event, without anybody's question; verification, and the signed export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sfumato.server.console.access.permissions import Action
from sfumato.server.console.pages.answer import Answer, Document, Page
from sfumato.server.console.pages.screen import Screen
from sfumato.server.console.pages.visit import Visit
from sfumato.server.console.services.log_reading import export_log, log_page, verify_log_now

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["SCREENS"]


def _show(console: Console, visit: Visit) -> Answer:
    """Show the events, the newest first."""
    shown = log_page(console, visit.identity, visit.page())
    return Page(template="log.html", title="Log", facts=shown._asdict() | {"key": console.ledger.public_key})


def _verify(console: Console, _: Visit) -> Answer:
    """Check the whole chain and price every loss again."""
    found, damage = verify_log_now(console)
    facts = {"verified": found, "damage": damage, "head": console.ledger.head()}
    return Page(template="verification.html", title="Verification", facts=facts)


def _export(console: Console, _: Visit) -> Answer:
    """Give the export, and remember at which head it was taken."""
    found = export_log(console)
    return Document(content=found.content.encode(), media_type="application/jsonl", file_name=found.file_name)


SCREENS: Final = (
    Screen(path="/log", action=Action.VIEW_LOG, show=_show),
    Screen(path="/log/verify", action=Action.VERIFY_LOG, show=_verify, method="POST"),
    Screen(path="/log/export", action=Action.EXPORT_LOG, show=_export, method="POST"),
)
