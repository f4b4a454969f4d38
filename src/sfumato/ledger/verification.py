"""Checking a whole ledger: its chain, its sums, its releases, and the price of every loss today."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sfumato.errors import LedgerMismatch
from sfumato.ledger.chain import Event
from sfumato.ledger.entry import entry_of
from sfumato.ledger.filters import Filters, Spent
from sfumato.ledger.head import Head
from sfumato.ledger.identity import Identity
from sfumato.ledger.log import (
    CHARGE,
    COMMIT,
    OPENED,
    VERSION,
    State,
    content_of,
    corrupt,
    decode_spent,
    last_state,
    state_of,
    walk,
)
from sfumato.ledger.releases import payload_digest, release_of
from sfumato.ledger.store import Transaction
from sfumato.privacy.serial import loss_from_json

__all__ = ["Verification", "verify_log"]

Price = Callable[[str, float], tuple[Spent, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What a check of a whole and unaltered ledger found; damage raises `LedgerCorrupt` instead.

    Attributes
    ----------
    events, charges, releases : int
        How many there are.
    underpriced : tuple of int
        Charges whose loss costs more today than was recorded: a hole in the accounting was mended since.
    overdrawn : bool
        Whether at today's prices the charges no longer fit into the budget.
    """

    events: int
    charges: int
    releases: int
    underpriced: tuple[int, ...]
    overdrawn: bool

    @property
    def sound(self) -> bool:
        """Whether every charge costs at most what was recorded and the budget holds."""
        return not self.underpriced and not self.overdrawn


def verify_log(connection: Transaction, identity: Identity, key: bytes, head: Head | None) -> Verification:
    """Check the whole database inside one reading transaction.

    Raises
    ------
    LedgerCorrupt
        A page, an event, a sum or a release is damaged or was altered, or the chain does not continue
        ``head``.
    LedgerMismatch
        ``head`` is not one that this ledger exported.
    """
    if head is not None and (head.ledger != identity.ledger or not head.signed_by(key)):
        raise LedgerMismatch(
            "head must be one that this ledger exported, got one of another ledger or an altered one; "
            "pass the head as Ledger.head() gave it"
        )
    if not connection.check_pages():
        raise corrupt("pass the database's own check", "damaged pages")
    last = last_state(connection)
    audit = _Audit(connection, identity, head)
    for event in walk(connection):
        audit.take(event)
    audit.finish(last)
    return Verification(
        events=last.event.position,
        charges=last.charges,
        releases=audit.releases,
        underpriced=tuple(audit.underpriced),
        overdrawn=not _limits_today(identity).hold(audit.repriced),
    )


def _limits_today(identity: Identity) -> Filters:
    """Return the filters with no limit above what the budget would be given today."""
    return identity.budget.weakest(identity.budget.remade().filters)


class _Audit:
    """Takes the events in order and holds what they must add up to."""

    def __init__(self, connection: Transaction, identity: Identity, head: Head | None) -> None:
        self.releases = 0
        self.underpriced: list[int] = []
        self._connection = connection
        self._budget = identity.budget
        self._filters = identity.budget.filters
        self._head = head
        self._totals = self.repriced = self._filters.nothing
        self._charges = self._versions = 0
        self._versions_of: dict[int, int] = {}
        # The same query asked a thousand times is priced once.
        self._price: Price = cache(lambda loss, delta: self._filters.price(loss_from_json(loss), delta))

    def take(self, event: Event) -> None:
        """Check one event against those before it."""
        content = content_of(event)
        if event.kind == CHARGE:
            self._take_charge(event, content)
        elif event.kind == COMMIT:
            self._take_commit(event, content)
        elif event.kind in (OPENED, VERSION) and (event.kind == OPENED) == (event.position == 1):
            self._versions += 1
        else:
            raise corrupt("hold events of the kinds it knows, in order", f"another kind at {event.position}")
        if state_of(event) != State(event, self._totals, self._charges, self._versions):
            raise corrupt("add up", f"other totals than the sum of the costs at event {event.position}")
        head = self._head
        if head is not None and event.position == head.position and event.digest != head.digest:
            raise corrupt("continue the head", f"another event {event.position} than the head says")

    def finish(self, last: State) -> None:
        """Check what can only be seen at the end."""
        (stored,) = self._connection.execute("SELECT count(*) FROM release").fetchone()
        if stored != self.releases:
            raise corrupt("hold one release per commit", f"{stored} releases for {self.releases} commits")
        head = self._head
        if head is not None and head.position > last.event.position:
            raise corrupt(
                "continue the head",
                f"{last.event.position} events where the head has seen {head.position}: it was rolled back",
            )

    def _take_charge(self, event: Event, content: Mapping[str, Any]) -> None:
        entry = entry_of(event, self._budget, committed=False)
        recorded = decode_spent(content["costs"])
        self._charges += 1
        self._totals = self._filters.after(self._totals, recorded)
        if event.charge != self._charges or not self._filters.hold(self._totals):
            raise corrupt("hold charges in order and within the budget", f"charge {event.charge} out of it")
        self._versions_of[self._charges] = entry.version
        today = self._price(content["loss"], entry.delta)
        self.repriced = self._filters.after(self.repriced, today)
        if any(
            now.amount > then.amount or now.delta > then.delta
            for now, then in zip(today, recorded, strict=True)
        ):
            self.underpriced.append(self._charges)

    def _take_commit(self, event: Event, content: Mapping[str, Any]) -> None:
        self.releases += 1
        row = self._connection.execute(
            "SELECT request, version, payload FROM release WHERE charge = :charge", {"charge": event.charge}
        ).fetchone()
        if event.charge not in self._versions_of:
            raise corrupt("commit only what was charged", f"a release of charge {event.charge}")
        if row is None or [row[0], row[1], payload_digest(row[2])] != release_of(content):
            raise corrupt(
                "hold each release as it was committed", f"another release of charge {event.charge}"
            )
