"""Releases: the noised answers, stored with their charge before they are delivered, to be shown again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from sfumato import _check
from sfumato.ledger.log.event_log import CHARGE, COMMIT, State, append, content_of, corrupt, event_of_charge
from sfumato.ledger.store.base import Transaction
from sfumato.privacy.receipt import Receipt

__all__ = ["check_payload", "find_release", "payload_digest", "release_of", "store_release"]

INSERT = """INSERT INTO release (charge, request, version, payload)
    VALUES (:charge, :request, :version, :payload)"""
LATEST = """SELECT charge, payload FROM release
    WHERE request = :request AND version = :version ORDER BY charge DESC LIMIT 1"""


def check_payload(payload: bytes, most: int) -> None:
    """Refuse what cannot be stored: no bytes, or more than ``most`` of them."""
    if not isinstance(payload, bytes):
        _check.refuse("payload", "be bytes", type(payload).__name__)
    if len(payload) > most:
        _check.refuse("payload", f"be at most {most} bytes", len(payload), "release fewer groups")


def payload_digest(payload: object) -> str | None:
    """Return the hash under which a release is chained; None for what is no bytes, as only damage leaves."""
    return hashlib.sha256(payload).hexdigest() if isinstance(payload, bytes) else None


def release_of(content: Mapping[str, Any]) -> list[object]:
    """Return what a commit says of its release: request, dataset version and hash."""
    return [content.get("request"), content.get("version"), content.get("payload")]


def store_release(connection: Transaction, state: State, receipt: Receipt, payload: bytes) -> None:
    """Write a release and the event that chains it; the same release a second time changes nothing."""
    number = receipt.sequence
    charge = event_of_charge(connection, CHARGE, number) if 0 < number <= state.charges else None
    if charge is None or charge.digest != receipt.digest:
        raise corrupt("hold every charge that it gave a receipt for", f"none for receipt {number}")
    charged = content_of(charge)
    content = {
        "request": charged["request"],
        "version": charged["version"],
        "payload": payload_digest(payload),
    }
    committed = event_of_charge(connection, COMMIT, number)
    if committed is None:
        append(connection, state, COMMIT, content, totals=state.totals, charge=number)
        connection.execute(INSERT, {**content, "charge": number, "payload": payload})
    elif release_of(content_of(committed)) != release_of(content):
        _check.refuse("receipt", "be committed with one release", number, "charge again for fresh noise")


def find_release(connection: Transaction, request: str, version: int) -> bytes | None:
    """Return the latest release of a request, checked against the event that chains it."""
    row = connection.execute(LATEST, {"request": request, "version": version}).fetchone()
    if row is None:
        return None
    payload: bytes = row[1]
    committed = event_of_charge(connection, COMMIT, row[0])
    expected = [request, version, payload_digest(payload)]
    if committed is None or release_of(content_of(committed)) != expected:
        raise corrupt("hold each release as it was committed", f"another release of charge {row[0]}")
    return payload
