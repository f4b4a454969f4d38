"""Registering a dataset: making its ledger, recognising it again, adding a version."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from sfumato import _check
from sfumato.errors import LedgerMismatch
from sfumato.ledger.budget.budget import Budget
from sfumato.ledger.budget.renewal import Renewal
from sfumato.ledger.failures import corrupt
from sfumato.ledger.identity import Dataset, Identity, draw_key, keyed
from sfumato.ledger.log.chain_head import ChainHead
from sfumato.ledger.log.event_log import Snapshot, append_event, event_at, last_event, walk
from sfumato.ledger.log.events import Opened, RunningTotals, VersionAdded, body_of
from sfumato.ledger.log.step_claims import claimed_in_all
from sfumato.ledger.store.base import Store, Transaction, WriteFirst
from sfumato.privacy.neighboring import Neighboring

__all__ = [
    "admit",
    "check_opening",
    "closed_on_error",
    "first_event",
    "known_versions",
    "read_identity",
    "require_head",
]


def check_opening(
    budget: Budget,
    privacy_unit: str,
    neighboring: Neighboring,
    dataset: Dataset,
    renewal: Renewal | None,
) -> None:
    """Refuse arguments of the wrong kind before any file is made."""
    _check.instance("budget", budget, Budget, "pass Budget.approximate(epsilon=..., delta=...), say")
    _check.instance("neighboring", neighboring, Neighboring, "pass Neighboring.ADD_REMOVE, say")
    _check.instance("dataset", dataset, Dataset, "pass Dataset(schema=..., fingerprint=...)")
    if renewal is not None:
        _check.instance("renewal", renewal, Renewal, "pass Renewal(every=..., column=...), or None")
    _check.instance("privacy_unit", privacy_unit, str, "name what one unit is")
    if not privacy_unit:
        _check.refuse("privacy_unit", "be a non-empty text", privacy_unit, "name what one unit is")


@contextlib.contextmanager
def closed_on_error(store: Store[Any]) -> Iterator[None]:
    """Close a store that could not be opened as a ledger."""
    try:
        yield
    except BaseException:
        store.close()
        raise


def first_event(identity: Identity, dataset: Dataset) -> WriteFirst:
    """Return what writes the first rows of a new ledger; the data is read before, not in the transaction."""
    key = draw_key()
    body = Opened(
        identity=identity,
        key=_commitment(key),
        schema=dataset.schema,
        fingerprint=dataset.digest(key),
    )
    nothing = RunningTotals(identity.budget.filters.nothing)

    def write(connection: Transaction) -> None:
        connection.execute("INSERT INTO secret (id, key) VALUES (1, :key)", {"key": key})
        append_event(connection, None, body, nothing.after(body, nothing.spent), charge=None)

    return write


def read_identity(connection: Transaction) -> tuple[Identity, bytes]:
    """Return what the ledger was made for, and its key."""
    row = connection.execute("SELECT key FROM secret").fetchone()
    first = event_at(connection, 1)
    body = body_of(first) if first is not None and first.intact else None
    if not isinstance(body, Opened):
        raise corrupt("begin with its identity", "another event or none")
    key = None if row is None else row[0]
    if not isinstance(key, bytes) or body.key != _commitment(key):
        raise corrupt("hold the key it was made with", "another one or none")
    return body.identity, key


def require_head(connection: Transaction, identity: Identity, key: bytes, head: ChainHead | None) -> None:
    """Refuse a ledger that does not continue an exported head: it was put back to an earlier state.

    Raises
    ------
    LedgerMismatch
        The head is not one of this ledger.
    LedgerCorrupt
        The chain does not hold the head's last event, or fewer steps of runs are claimed than it counts.
    """
    if head is None:
        return
    head.require_of(identity.ledger, key)
    event = event_at(connection, head.position)
    if event is None or event.digest != head.digest:
        found = "a chain without it" if event is None else f"another event {head.position}"
        raise corrupt("continue the head", f"{found}: the ledger was rolled back")
    claimed = claimed_in_all(connection)
    if claimed < head.steps:
        found = f"{claimed} claimed steps where the head has seen {head.steps}"
        raise corrupt("continue the head", f"{found}: the ledger was rolled back")


def known_versions(connection: Transaction) -> list[tuple[str, str]]:
    """Return schema and fingerprint of every version so far, after checking every link of the chain."""
    bodies = [body_of(event) for event in walk(connection, (Opened.kind, VersionAdded.kind))]
    return [(b.schema, b.fingerprint) for b in bodies if isinstance(b, Opened | VersionAdded)]


def admit(store: Store[Any], dataset: Dataset, key: bytes, *, new_version: bool) -> int:
    """Return the number of the version that the dataset is, adding one if that is wanted.

    Raises
    ------
    LedgerMismatch
        The ledger has not seen this dataset, and ``new_version`` is False.
    """
    found = (dataset.schema, dataset.digest(key))
    with store.transaction(write=False) as connection:
        known = known_versions(connection)
    if found not in known and new_version:
        with store.transaction(write=True) as connection:
            # Another process may have added it since.
            known = known_versions(connection)
            if found not in known:
                added = VersionAdded(schema=dataset.schema, fingerprint=found[1])
                Snapshot(connection, last_event(connection)).append(added)
                known.append(found)
    if found not in known:
        part = "content" if found[0] in [schema for schema, _ in known] else "schema"
        raise LedgerMismatch(
            f"dataset must be one that the ledger at {store.name} belongs to, got another {part}; pass "
            "new_version=True (--new-version) if it is a new version of the same dataset about the same "
            "units, which shares the budget, or give another dataset its own ledger"
        )
    return len(known) - known[::-1].index(found)


def _commitment(key: bytes) -> str:
    return keyed(key, "key", "")
