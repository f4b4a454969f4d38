"""Checking a whole ledger: its chain, its sums, its releases, and the price of every loss today."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sfumato.errors import LedgerError, LedgerMismatch, ParameterError
from sfumato.ledger.accounts import Books, check_analyst, check_budget, keys_of
from sfumato.ledger.chain import Event
from sfumato.ledger.claims import check_claims, reserved_by
from sfumato.ledger.entry import entry_of
from sfumato.ledger.filters import Spent
from sfumato.ledger.head import Head
from sfumato.ledger.identity import Identity
from sfumato.ledger.log import (
    ACCOUNT,
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
from sfumato.ledger.refusal import Holding, all_hold
from sfumato.ledger.releases import payload_digest, release_of
from sfumato.ledger.renewal import check_period
from sfumato.ledger.store import Transaction
from sfumato.privacy.catalog import loss_from_json

__all__ = ["Verification", "verify_events", "verify_log"]

Stored = Callable[[int], object]
Price = Callable[[str, float], tuple[Spent, ...]]

RELEASE = "SELECT request, version, payload FROM release WHERE charge = :charge"


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

    def stored(charge: int) -> object:
        row = connection.execute(RELEASE, {"charge": charge}).fetchone()
        return None if row is None else [row[0], row[1], payload_digest(row[2])]

    reserved: dict[int, int] = {}
    found = verify_events(_noting(walk(connection), reserved), identity, last, head, stored)
    seen = 0 if head is None else head.steps
    if reserved:
        check_claims(connection, reserved, seen)
    elif seen:
        raise corrupt("continue the head", f"no runs where the head has seen {seen} steps")
    (releases,) = connection.execute("SELECT count(*) FROM release").fetchone()
    if releases != found.releases:
        raise corrupt("hold one release per commit", f"{releases} releases for {found.releases} commits")
    return found


def _noting(events: Iterable[Event], reserved: dict[int, int]) -> Iterable[Event]:
    """Pass events on, and add up the steps that each run reserved."""
    for event in events:
        run, steps = reserved_by(event)
        if steps and run != event.charge and run not in reserved:
            raise corrupt("extend runs that there are", f"another run at event {event.position}")
        if steps:
            reserved[run] = reserved.get(run, 0) + steps
        yield event


def verify_events(
    events: Iterable[Event],
    identity: Identity,
    last: State,
    head: Head | None,
    stored: Stored | None = None,
) -> Verification:
    """Check what a ledger's events say, and price every loss again.

    Parameters
    ----------
    events : iterable of Event
        All of them in order, each link checked as it is taken.
    identity : Identity
        What the first of them says.
    last : State
        The last of them.
    head : Head or None
        What the chain must continue.
    stored : callable, optional
        Returns what is stored of a charge's release; left out where no releases are at hand.
    """
    audit = _Audit(identity, head, stored)
    for event in events:
        audit.take(event)
    if head is not None and head.position > last.event.position:
        raise corrupt(
            "continue the head",
            f"{last.event.position} events where the head has seen {head.position}: it was rolled back",
        )
    # Limits no higher than what the budget would be given today.
    limits = identity.budget.weakest(identity.budget.remade().filters)
    return Verification(
        events=last.event.position,
        charges=last.charges,
        releases=audit.releases,
        underpriced=tuple(audit.underpriced),
        overdrawn=not audit.repriced.dataset_holds(limits),
    )


class _Audit:
    """Takes the events in order and holds what they must add up to."""

    def __init__(self, identity: Identity, head: Head | None, stored: Stored | None) -> None:
        self.releases = 0
        self.underpriced: list[int] = []
        self._identity = identity
        self._filters = identity.budget.filters
        self._head = head
        self._stored = stored
        self._totals = self._filters.nothing
        self._books, self.repriced = Books(self._filters), Books(self._filters)
        self._charges = self._versions = self._accounts = 0
        self._committed: set[int] = set()
        # The same query asked a thousand times is priced once.
        self._price: Price = cache(lambda loss, delta: self._filters.price(loss_from_json(loss), delta))

    def take(self, event: Event) -> None:
        """Check one event against those before it."""
        content = content_of(event)
        if event.kind == CHARGE:
            self._take_charge(event, content)
        elif event.kind == COMMIT:
            self._take_commit(event, content)
        elif event.kind == ACCOUNT:
            self._take_account(event, content)
        elif event.kind in (OPENED, VERSION) and (event.kind == OPENED) == (event.position == 1):
            self._versions += 1
        else:
            raise corrupt("hold events of the kinds it knows, in order", f"another kind at {event.position}")
        if state_of(event) != State(event, self._totals, self._charges, self._versions, self._accounts):
            raise corrupt("add up", f"other totals than the sum of the costs at event {event.position}")
        head = self._head
        if head is not None and event.position == head.position and event.digest != head.digest:
            raise corrupt("continue the head", f"another event {event.position} than the head says")

    def _take_charge(self, event: Event, content: Mapping[str, Any]) -> None:
        entry = entry_of(event, self._identity.budget, committed=False)
        recorded = decode_spent(content["costs"])
        self._charges += 1
        if event.charge != self._charges or not self._held(content, recorded):
            raise corrupt("hold charges in order and within the budget", f"charge {event.charge} out of it")
        self._totals = self._filters.after(self._totals, recorded)
        self._books.take(event, content)
        today = self._price(content["loss"], entry.delta)
        self.repriced.add(keys_of(content), today)
        if any(
            now.amount > then.amount or now.delta > then.delta
            for now, then in zip(today, recorded, strict=True)
        ):
            self.underpriced.append(self._charges)

    def _held(self, content: Mapping[str, Any], cost: tuple[Spent, ...]) -> bool:
        """Whether a charge fitted into every budget that it names, as they were then."""
        whole, keys = self._identity.budget, keys_of(content)
        try:
            check_period(self._identity.renewal, keys[0].period)
            holdings = [self._books.holding(key, whole) for key in keys]
        except (LedgerError, ParameterError):
            return False
        if self._identity.renewal is None:
            holdings[0] = Holding(whole, self._totals)
        return all_hold(holdings, cost)

    def _take_account(self, event: Event, content: Mapping[str, Any]) -> None:
        self._accounts += 1
        self._books.take(event, content)
        try:
            budget = self._books.budgets[check_analyst(content["analyst"])]
            if budget is not None:
                check_budget(budget, self._identity.budget)
        except ParameterError as error:
            raise corrupt("hold accounts of its kind", f"another one at event {event.position}") from error

    def _take_commit(self, event: Event, content: Mapping[str, Any]) -> None:
        self.releases += 1
        charge = event.charge
        if charge is None or not 0 < charge <= self._charges or charge in self._committed:
            raise corrupt("commit what was charged, once", f"a release of charge {charge}")
        self._committed.add(charge)
        if self._stored is not None and self._stored(charge) != release_of(content):
            raise corrupt("hold each release as it was committed", f"another release of charge {charge}")
