"""The entries of a ledger: one recorded charge each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType

from sfumato.errors import LedgerUnavailable, ParameterError
from sfumato.ledger.budget.budget import Budget
from sfumato.ledger.budget.spent import Spent
from sfumato.ledger.failures import unreadable
from sfumato.ledger.log.events import Charged, Committed, read_event
from sfumato.ledger.log.hash_chain import Event
from sfumato.privacy.catalog import loss_from_json
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["Entry", "entries_of", "entry_from", "entry_of", "time_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One charge, as the ledger recorded it before any data was read.

    Attributes
    ----------
    sequence : int
        Number of the charge, from 1.
    time : datetime
        When it was recorded, in UTC.
    description : str
        What was asked, as the caller put it.
    loss : PrivacyLoss
        What was run.
    epsilon, delta : float
        The guarantee of this charge alone, its epsilon read at ``delta``.
    costs : mapping of str to Spent
        What it added to each filter of the budget, by the filter's name: its kind, and the order of a Rényi
        filter.
    version : int
        Version of the dataset that it was charged for.
    simulated : bool
        Whether the noise was simulated.
    committed : bool
        Whether its release was stored; if not, the answer was never delivered.
    previous, digest : str
        Hashes of the chain before and with this charge, in hexadecimal.
    analyst : str
        Whose account was charged as well as the dataset's; "" if nobody's.
    period : str
        Which period's budget was charged, where the budget renews.
    steps : int
        How many steps of a training run it reserved; 0 for all other charges.
    purpose : str
        What the answer is for, as who asked put it.

    Examples
    --------
    >>> from sfumato.ledger import Budget, Dataset, Ledger
    >>> from sfumato.privacy import Laplace, Neighboring
    >>> ledger = Ledger.open(
    ...     None,
    ...     budget=Budget.pure(epsilon=1.0),
    ...     privacy_unit="person_id",
    ...     neighboring=Neighboring.ADD_REMOVE,
    ...     dataset=Dataset(schema="people(age BIGINT)", fingerprint=lambda key: "0" * 64),
    ... )
    >>> receipt = ledger.charge(Laplace(2.0), delta=0.0, description="how many people")
    >>> (entry,) = ledger.entries()
    >>> entry.description, entry.epsilon, entry.loss
    ('how many people', 0.5, Laplace(noise_multiplier=2.0))
    >>> ledger.close()
    """

    sequence: int
    time: datetime
    description: str
    loss: PrivacyLoss
    epsilon: float
    delta: float
    costs: Mapping[str, Spent]
    version: int
    simulated: bool
    committed: bool
    previous: str
    digest: str
    analyst: str = ""
    period: str = ""
    steps: int = 0
    purpose: str = ""


def entry_of(event: Event, budget: Budget, *, committed: bool) -> Entry:
    """Return the entry that a charge's event holds."""
    body, _, time = read_event(event)
    if not isinstance(body, Charged):
        raise unreadable(event.position)
    return entry_from(event, body, time, budget, committed=committed)


def entry_from(event: Event, body: Charged, time: str, budget: Budget, *, committed: bool) -> Entry:
    """Return the entry of a charge whose event was read."""
    if len(body.costs) != len(budget.filters.members):
        raise unreadable(event.position)
    costs = {member.name: cost for member, cost in zip(budget.filters.members, body.costs, strict=True)}
    return Entry(
        sequence=event.charge or 0,
        time=time_of(event, time),
        description=body.description,
        loss=_known_loss(event, body.loss),
        epsilon=body.epsilon,
        delta=body.delta,
        costs=MappingProxyType(costs),
        version=body.dataset_version,
        simulated=body.simulated,
        committed=committed,
        previous=event.previous,
        digest=event.digest,
        analyst=body.analyst,
        period=body.period,
        steps=body.steps,
        purpose=body.purpose,
    )


def entries_of(events: Iterable[Event], budget: Budget) -> tuple[Entry, ...]:
    """Return the entries of all charges among events, each with whether its release was stored."""
    events = tuple(events)
    committed = {event.charge for event in events if event.kind == Committed.kind}
    charges = (event for event in events if event.kind == Charged.kind)
    return tuple(entry_of(event, budget, committed=event.charge in committed) for event in charges)


def time_of(event: Event, time: str) -> datetime:
    """Return an event's time from its text."""
    try:
        return datetime.fromisoformat(time)
    except ValueError as error:
        raise unreadable(event.position) from error


@lru_cache(maxsize=1024)
def _loss(text: str) -> PrivacyLoss:
    """Return a loss; one query asked a thousand times is read once."""
    return loss_from_json(text)


def _known_loss(event: Event, text: str) -> PrivacyLoss:
    try:
        return _loss(text)
    except ParameterError as error:
        raise LedgerUnavailable(
            f"ledger must hold losses that this version knows, got another one in charge {event.charge}; "
            "upgrade sfumato to read it"
        ) from error
