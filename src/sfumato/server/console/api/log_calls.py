"""The log: its events, its verification and its export."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from sfumato.server.console.access.permissions import Action
from sfumato.server.console.api.operation import JSON, Call, Operation, Outcome
from sfumato.server.console.api.schemas import WHOLE, obj, reference
from sfumato.server.console.services.log_reading import export_log, log_page, verify_log_now

if TYPE_CHECKING:
    from sfumato.server.console.console import Console

__all__ = ["OPERATIONS"]


def _show(console: Console, call: Call) -> Outcome:
    found = log_page(console, call.identity, call.query.get("page", 1))
    document = {
        "events": found.rows,
        "page": found.page,
        "last": found.last,
        "head": None if found.head is None else json.loads(found.head.to_json()),
        "public_key": console.ledger.public_key,
    }
    return Outcome(content=document)


def _verify(console: Console, _: Call) -> Outcome:
    found, damage = verify_log_now(console)
    document = {
        "sound": found is not None and found.sound,
        "events": 0 if found is None else found.events,
        "charges": 0 if found is None else found.charges,
        "releases": 0 if found is None else found.releases,
        "underpriced": () if found is None else found.underpriced,
        "overdrawn": found is not None and found.overdrawn,
        "damage": damage,
    }
    return Outcome(content=document)


def _export(console: Console, _: Call) -> Outcome:
    found = export_log(console)
    named = {"content-disposition": f'attachment; filename="{found.file_name}"'}
    return Outcome(content=found.content.encode(), headers=named)


OPERATIONS: Final = (
    Operation(
        name="showLog",
        method="GET",
        path="/log",
        action=Action.VIEW_LOG,
        summary="Return events of the ledger, the newest first, without anybody's question.",
        run=_show,
        query={"page": WHOLE},
        answers={200: {JSON: reference("Log")}},
    ),
    Operation(
        name="verifyLog",
        method="POST",
        path="/log/verify",
        action=Action.VERIFY_LOG,
        summary="Check the whole chain, and price every loss again.",
        run=_verify,
        body=obj({}),
        answers={200: {JSON: reference("Verified")}},
    ),
    Operation(
        name="exportLog",
        method="POST",
        path="/log/export",
        action=Action.EXPORT_LOG,
        summary="Return the signed export, and remember at which head it was taken.",
        run=_export,
        body=obj({}),
        answers={200: {"application/jsonl": None}},
    ),
)
