"""One recorded charge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from sfumato.errors import LedgerUnavailable, ParameterError
from sfumato.ledger.budget import Budget
from sfumato.ledger.chain import Event, decode_number
from sfumato.ledger.filters import Spent
from sfumato.ledger.log import content_of, corrupt, decode_spent
from sfumato.privacy.catalog import loss_from_json
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["Entry", "entry_of"]


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
        Whether its release was stored; if not, the answer never left.
    previous, digest : str
        Hashes of the chain before and with this charge, in hexadecimal.
    analyst : str
        Whose account was charged as well as the dataset's; "" if nobody's.
    period : str
        Which period's budget was charged, where the budget renews.
    steps : int
        How many steps of a training run it reserved; 0 for all other charges.
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


def entry_of(event: Event, budget: Budget, *, committed: bool) -> Entry:
    """Return the entry that a charge's event holds."""
    content = content_of(event)
    try:
        return _read(event, content, budget, committed=committed)
    except (KeyError, TypeError, ValueError) as error:
        raise corrupt("hold readable charges", f"an unreadable charge {event.charge}") from error


def _read(event: Event, content: Mapping[str, Any], budget: Budget, *, committed: bool) -> Entry:
    costs = zip(budget.filters.members, decode_spent(content["costs"]), strict=True)
    return Entry(
        sequence=event.charge or 0,
        time=datetime.fromisoformat(content["time"]),
        description=content["description"],
        loss=_known_loss(event, content["loss"]),
        epsilon=decode_number(content["epsilon"]),
        delta=decode_number(content["delta"]),
        costs=MappingProxyType({member.name: cost for member, cost in costs}),
        version=content["version"],
        simulated=content["simulated"],
        committed=committed,
        previous=event.previous,
        digest=event.digest,
        analyst=content.get("analyst", ""),
        period=content.get("period", ""),
        steps=content.get("steps", 0),
    )


def _known_loss(event: Event, text: str) -> PrivacyLoss:
    try:
        return loss_from_json(text)
    except ParameterError as error:
        raise LedgerUnavailable(
            f"ledger must hold losses that this version knows, got another one in charge {event.charge}; "
            "upgrade sfumato to read it"
        ) from error
