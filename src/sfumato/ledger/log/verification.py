"""Checking a whole ledger: its chain, its sums, its releases, and the price of every loss today."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

from sfumato._wire import BOOLEAN, INTEGER, Format, Record, canonical, parse, sequence
from sfumato.errors import LedgerError, ParameterError, PrecisionWarning, UnsupportedView
from sfumato.ledger.budget.budget_check import Balance, fits_all
from sfumato.ledger.budget.renewal import check_period
from sfumato.ledger.budget.spent import BinarySpent, Spent
from sfumato.ledger.failures import corrupt
from sfumato.ledger.identity import Identity
from sfumato.ledger.log.accounts import AccountTotals
from sfumato.ledger.log.chain_head import ChainHead
from sfumato.ledger.log.entries import entry_from
from sfumato.ledger.log.event_log import last_event, walk
from sfumato.ledger.log.events import (
    Charged,
    Committed,
    Drawn,
    Opened,
    RunningTotals,
    read_event,
)
from sfumato.ledger.log.hash_chain import Event
from sfumato.ledger.log.member_events import AccountSet
from sfumato.ledger.log.releases import as_committed
from sfumato.ledger.log.review_roll import ReviewRoll
from sfumato.ledger.log.step_claims import check_claims, steps_reserved
from sfumato.ledger.store.base import Transaction
from sfumato.privacy.accountant.precision import Precision
from sfumato.privacy.catalog import loss_from_json

__all__ = ["Verification", "verify_events", "verify_log"]

Stored: TypeAlias = Callable[[int], Committed | None]
Price: TypeAlias = Callable[[str, float, bool], tuple[Spent, ...]]

FORMAT: Final = Format("sfumato.ledger-verification", 1)
ROUND_OFF: Final = 1e-9
"""Relative width within which two prices of one loss are the same: both are proven upper bounds, and how far
each is above the truth depends on the machine's libraries in its last digits."""
_FINER: Final = (1e-4, 1e-5, 1e-6)
"""Relative widths to read a loss at again, before it is said to cost more than was recorded."""
RELEASE: Final = "SELECT request, dataset_version, payload FROM release WHERE charge = :charge"


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

    Examples
    --------
    >>> found = Verification(events=2, charges=1, releases=0, underpriced=(), overdrawn=False)
    >>> found.sound, Verification.from_json(found.to_json()) == found
    (True, True)
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

    def to_json(self) -> str:
        """Return the report as one line of JSON.

        Returns
        -------
        str
            Of the format ``sfumato.ledger-verification``.
        """
        return canonical(FORMAT.wrap(_RECORD.encode(self)))

    @classmethod
    def from_json(cls, text: str) -> Verification:
        """Read a report that `to_json` wrote.

        Parameters
        ----------
        text : str
            What `to_json` wrote.

        Returns
        -------
        Verification

        Raises
        ------
        ParameterError
            The text is not one.
        """
        name = "text of a verification report"
        _, fields = FORMAT.unwrap(name, parse(name, text))
        return _RECORD.decode(name, fields)


_RECORD: Final[Record[Verification]] = Record(
    "a verification report",
    Verification,
    {
        "events": INTEGER,
        "charges": INTEGER,
        "releases": INTEGER,
        "underpriced": sequence(INTEGER),
        "overdrawn": BOOLEAN,
    },
)


def verify_log(
    connection: Transaction, identity: Identity, key: bytes, head: ChainHead | None
) -> Verification:
    """Check the whole database inside one reading transaction.

    Raises
    ------
    LedgerCorrupt
        A page, an event, a sum or a release is damaged or was altered, or the chain does not continue
        ``head``.
    LedgerMismatch
        ``head`` is not one that this ledger exported.
    """
    if head is not None:
        head.require_of(identity.ledger, key)
    if not connection.check_pages():
        raise corrupt("pass the database's own check", "damaged pages")
    last = last_event(connection).event

    def stored(charge: int) -> Committed | None:
        row = connection.execute(RELEASE, {"charge": charge}).fetchone()
        return None if row is None else as_committed(*row)

    reserved: dict[int, int] = {}
    found = verify_events(_adding_steps(walk(connection), reserved), identity, last, head, stored)
    check_claims(connection, reserved, 0 if head is None else head.steps)
    (releases,) = connection.execute("SELECT count(*) FROM release").fetchone()
    if releases != found.releases:
        raise corrupt("hold one release per commit", f"{releases} releases for {found.releases} commits")
    return found


def _adding_steps(events: Iterable[Event], reserved: dict[int, int]) -> Iterable[Event]:
    """Pass events on, and add up the steps that each run reserved."""
    for event in events:
        run, steps = steps_reserved(event)
        if steps and run != event.charge and run not in reserved:
            raise corrupt("extend runs that there are", f"another run at event {event.position}")
        if steps:
            reserved[run] = reserved.get(run, 0) + steps
        yield event


def verify_events(
    events: Iterable[Event],
    identity: Identity,
    last: Event,
    head: ChainHead | None,
    stored: Stored | None = None,
) -> Verification:
    """Check what a ledger's events say, and price every loss again.

    Parameters
    ----------
    events : iterable of Event
        All of them in order, each link checked as it is taken.
    identity : Identity
        What the first of them says.
    last : Event
        The last of them.
    head : ChainHead or None
        What the chain must continue.
    stored : callable, optional
        Returns what is stored of a charge's release; left out where no releases are at hand.
    """
    audit = _Audit(identity, head, stored)
    for event in events:
        audit.take(event)
    if head is not None and head.position > last.position:
        raise corrupt(
            "continue the head",
            f"{last.position} events where the head has seen {head.position}: it was rolled back",
        )
    # Limits no higher than what the budget would be given today.
    limits = identity.budget.weakest(identity.budget.remade().filters)
    return Verification(
        events=last.position,
        charges=audit.charges,
        releases=audit.releases,
        underpriced=tuple(audit.underpriced),
        overdrawn=not audit.repriced.dataset_holds(limits),
    )


def _dearer(today: tuple[Spent, ...], recorded: tuple[Spent, ...]) -> bool:
    """Whether a charge costs more today in any filter than was recorded."""
    return any(
        now.amount > then.amount * (1 + ROUND_OFF) or now.delta > then.delta * (1 + ROUND_OFF)
        for now, then in zip(today, recorded, strict=True)
    )


class _Audit:
    """Takes the events in order and holds what they must add up to."""

    def __init__(self, identity: Identity, head: ChainHead | None, stored: Stored | None) -> None:
        self.releases = 0
        self.underpriced: list[int] = []
        self._identity = identity
        self._filters = identity.budget.filters
        self._head = head
        self._stored = stored
        self._totals = RunningTotals(self._filters.nothing)
        self._accounts, self.repriced = AccountTotals(self._filters), AccountTotals(self._filters)
        self._reviews = ReviewRoll(identity)
        self._committed: set[int] = set()
        self._undrawn: set[int] = set()
        # The same query asked a thousand times is priced once.
        self._price: Price = cache(self._priced)

    def _priced(self, loss: str, delta: float, binary: bool) -> tuple[Spent, ...]:
        """Return what a charge costs today; ``binary`` is one of numbers that mean the floats they are."""
        price = self._filters.binary_price if binary else self._filters.price
        return price(loss_from_json(loss), delta)

    @property
    def charges(self) -> int:
        """How many charges there were."""
        return self._totals.charges

    def take(self, event: Event) -> None:
        """Check one event against those before it."""
        body, totals, time = read_event(event)
        spent = self._totals.spent
        if isinstance(body, Opened) != (event.position == 1):
            raise corrupt("hold events of the kinds it knows, in order", f"another kind at {event.position}")
        if isinstance(body, Charged):
            spent = self._take_charge(event, body, time)
        elif isinstance(body, Drawn):
            self._take_draw(event)
        elif isinstance(body, Committed):
            self._take_commit(event, body)
        self._reviews.follow(event, body, time)
        if isinstance(body, AccountSet):
            self._accounts.take(body)
        self._totals = self._totals.after(body, spent)
        if totals != self._totals:
            raise corrupt("add up", f"other totals than the sum of the costs at event {event.position}")
        head = self._head
        if head is not None and event.position == head.position and event.digest != head.digest:
            raise corrupt("continue the head", f"another event {event.position} than the head says")

    def _take_charge(self, event: Event, body: Charged, time: str) -> tuple[Spent, ...]:
        """Check a charge and return what is spent with it."""
        entry_from(event, body, time, self._identity.budget, committed=False)
        number = self._totals.charges + 1
        if event.charge != number or not self._fitted(body):
            raise corrupt("hold charges in order and within the budget", f"charge {event.charge} out of it")
        if body.draws:
            self._undrawn.add(number)
        self._accounts.take(body)
        today = self._repriced(body)
        self.repriced.add(body.accounts, today)
        if _dearer(today, body.costs):
            self.underpriced.append(number)
        return self._filters.after(self._totals.spent, body.costs)

    def _repriced(self, body: Charged) -> tuple[Spent, ...]:
        """Return what a charge costs today, read as finely as it takes to tell it from what was recorded.

        Who charged it may have read the loss more finely than a price needs, as a calibration does.
        """
        asked = body.loss, body.delta, isinstance(body.costs[0], BinarySpent)
        today = self._price(*asked)
        for relative in _FINER:
            if not _dearer(today, body.costs):
                break
            with contextlib.suppress(UnsupportedView), warnings.catch_warnings():
                warnings.simplefilter("ignore", PrecisionWarning)
                # What is proven is remembered, and the next price reads it.
                loss_from_json(body.loss).epsilon_interval(body.delta, precision=Precision(relative=relative))
            today = self._priced(*asked)
        return today

    def _fitted(self, body: Charged) -> bool:
        """Whether a charge fitted into every budget that it names, as they were then."""
        whole = self._identity.budget
        try:
            check_period(self._identity.renewal, body.period)
            balances = [self._accounts.balance(key, whole) for key in body.accounts]
        except (LedgerError, ParameterError):
            return False
        if self._identity.renewal is None:
            balances[0] = Balance(whole, self._totals.spent)
        return fits_all(balances, body.costs)

    def _take_draw(self, event: Event) -> None:
        if event.charge not in self._undrawn:
            raise corrupt("draw for what was charged, once", f"a draw for charge {event.charge}")
        self._undrawn.remove(event.charge)

    def _take_commit(self, event: Event, body: Committed) -> None:
        self.releases += 1
        charge = event.charge
        if charge in self._undrawn:
            raise corrupt("commit what was drawn", f"a release of charge {charge}")
        if charge is None or not 0 < charge <= self._totals.charges or charge in self._committed:
            raise corrupt("commit what was charged, once", f"a release of charge {charge}")
        self._committed.add(charge)
        if self._stored is not None and self._stored(charge) != body:
            raise corrupt("hold each release as it was committed", f"another release of charge {charge}")
