"""Releases: the noised answers, stored with their charge before they are delivered, to be shown again."""

from __future__ import annotations

import hashlib
from typing import Final

from sfumato import _check
from sfumato._wire import canonical
from sfumato.errors import LedgerMismatch
from sfumato.ledger.failures import corrupt
from sfumato.ledger.identity import keyed
from sfumato.ledger.log.event_log import EventLog, Snapshot, event_of_charge
from sfumato.ledger.log.events import AccountKey, Charged, Committed, body_of
from sfumato.ledger.store.base import Transaction, stating_outcome
from sfumato.privacy.receipt import Receipt

__all__ = [
    "as_committed",
    "commit_release",
    "find_release",
    "payload_digest",
    "release_of",
    "request_hash",
]

INSERT: Final = """INSERT INTO release (charge, request, dataset_version, payload)
    VALUES (:charge, :request, :dataset_version, :payload)"""
OF_CHARGE: Final = "SELECT request, dataset_version, payload FROM release WHERE charge = :charge"
LATEST: Final = """SELECT charge, payload FROM release
    WHERE request = :request AND dataset_version = :version ORDER BY charge DESC LIMIT 1"""


def request_hash(key: bytes, request: str, account: AccountKey) -> str:
    """Return the keyed hash of a request by one account; "" for a request that is never to be found again."""
    _check.instance("request", request, str, "pass a text, or leave it out")
    if not request:
        return ""
    asked = {"analyst": account.analyst, "period": account.period, "request": request}
    return keyed(key, "request", canonical(asked))


def commit_release(log: EventLog, ledger: str, receipt: Receipt, payload: bytes) -> None:
    """Store the release of a charge, durably; raises what `sfumato.ledger.Ledger.commit` says."""
    _check_payload(payload, log.store.max_payload_bytes)
    if receipt.ledger != ledger:
        raise LedgerMismatch(
            f"receipt must be of ledger {ledger}, got one of {receipt.ledger}; commit it there"
        )
    number = receipt.sequence
    stays = f"charge {number} stays, and its answer is not safely stored: asking again is charged anew"
    with stating_outcome(stays), log.transaction(write=True) as snapshot:
        _store_release(snapshot, receipt, payload)


def _check_payload(payload: bytes, maximum: int) -> None:
    """Refuse what cannot be stored: no bytes, or more than ``maximum`` of them."""
    if not isinstance(payload, bytes):
        _check.refuse_type("payload", "be bytes", payload, "encode the release first")
    if len(payload) > maximum:
        found = f"it has {len(payload)}"
        _check.refuse_state("payload", f"be at most {maximum} bytes", found, "release fewer groups")


def payload_digest(payload: bytes) -> str:
    """Return the hash under which a release is chained."""
    return hashlib.sha256(payload).hexdigest()


def _store_release(snapshot: Snapshot, receipt: Receipt, payload: bytes) -> None:
    """Write a release and the event that chains it; the same release a second time changes nothing."""
    connection, number = snapshot.connection, receipt.sequence
    charge = None
    if 0 < number <= snapshot.end.totals.charges:
        charge = event_of_charge(connection, Charged.kind, number)
    charged = None if charge is None or charge.digest != receipt.digest else body_of(charge)
    if not isinstance(charged, Charged):
        raise corrupt("hold every charge that it gave a receipt for", f"none for receipt {number}")
    release = Committed(
        request=charged.request, dataset_version=charged.dataset_version, payload=payload_digest(payload)
    )
    committed = event_of_charge(connection, Committed.kind, number)
    if committed is None:
        snapshot.append(release, charge=number)
        row = {"charge": number, "request": release.request, "dataset_version": release.dataset_version}
        connection.execute(INSERT, {**row, "payload": payload})
    elif body_of(committed) != release:
        _check.refuse("receipt", "be committed with one release", number, "charge again for fresh noise")


def find_release(connection: Transaction, request: str, version: int) -> bytes | None:
    """Return the latest release of a request, checked against the event that chains it."""
    row = connection.execute(LATEST, {"request": request, "version": version}).fetchone()
    if row is None:
        return None
    charge, payload = row
    committed = event_of_charge(connection, Committed.kind, charge)
    if committed is None or body_of(committed) != as_committed(request, version, payload):
        raise corrupt("hold each release as it was committed", f"another release of charge {charge}")
    found: bytes = payload
    return found


def release_of(connection: Transaction, number: int) -> bytes | None:
    """Return the release of a charge, checked against the event that chains it; None if there is none."""
    row = connection.execute(OF_CHARGE, {"charge": number}).fetchone()
    if row is None:
        return None
    request, version, payload = row
    committed = event_of_charge(connection, Committed.kind, number)
    if committed is None or body_of(committed) != as_committed(request, version, payload):
        raise corrupt("hold each release as it was committed", f"another release of charge {number}")
    found: bytes = payload
    return found


def as_committed(request: str, version: int, payload: object) -> Committed:
    """Return what the commit of a stored release must say; nothing that is no bytes was ever committed."""
    digest = payload_digest(payload) if isinstance(payload, bytes) else ""
    return Committed(request=request, dataset_version=version, payload=digest)
