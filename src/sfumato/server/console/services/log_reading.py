"""The log, page by page, its verification and its export."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sfumato.errors import LedgerCorrupt
from sfumato.ledger import ChainHead, Role, Verification
from sfumato.ledger.log.hash_chain import Event
from sfumato.server.console.access.identity import Identity

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["LogExport", "LogPage", "export_log", "log_page", "verify_log_now"]

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


class LogPage(NamedTuple):
    """Some events, the newest first."""

    rows: list[Mapping[str, Any]]
    page: int
    last: int
    head: ChainHead | None


class LogExport(NamedTuple):
    """An export, and the name of its file."""

    content: str
    file_name: str


def log_page(console: Console, identity: Identity, page: int) -> LogPage:
    """Return a page of the log; only a curator sees when noise was drawn: that depends on rows.

    Parameters
    ----------
    console : Console
    identity : Identity
    page : int
        From 1; beyond the last one it is the last.
    """
    events, whole = console.ledger.events, Role.CURATOR in identity.roles
    hidden = () if whole else _TIMED
    last = max(1, -(-events.count(without=hidden) // _ROWS))
    page = min(page, last)
    rows = [_row(each) for each in events.newest(_ROWS, offset=(page - 1) * _ROWS, without=hidden)]
    return LogPage(rows, page, last, console.ledger.head() if whole else None)


def _row(event: Event) -> Mapping[str, Any]:
    body = json.loads(event.body)
    return {
        "position": event.position,
        "kind": _NAMES.get(event.kind, event.kind),
        "charge": event.charge,
        "time": body["time"],
        "by": body.get("by") or body.get("analyst") or body.get("name") or "",
        "digest": event.digest,
    }


def verify_log_now(console: Console) -> tuple[Verification | None, str]:
    """Check the whole chain and price every loss again; return what was found, or the damage.

    Parameters
    ----------
    console : Console
    """
    try:
        return console.ledger.verify(), ""
    except LedgerCorrupt as error:
        return None, str(error)


def export_log(console: Console) -> LogExport:
    """Return the signed export, and remember at which head it was taken.

    Parameters
    ----------
    console : Console
    """
    content = console.ledger.export()
    console.heads.store(console.ledger.head())
    return LogExport(content, f"ledger-{console.ledger.ledger_id[:8]}.jsonl")
