"""How a budget is spent: by filter, by analyst, by period, and how long it lasts at the rate of late.

It is made from the ledger's charges, whose times are those at which questions were asked, and is for the
curator.

Examples
--------
>>> from datetime import UTC, datetime, timedelta
>>> from sfumato.ledger import Budget, Dataset, Ledger
>>> from sfumato.privacy import Laplace, Neighboring
>>> ledger = Ledger.open(
...     None,
...     budget=Budget.pure(epsilon=1.0),
...     privacy_unit="person_id",
...     neighboring=Neighboring.ADD_REMOVE,
...     dataset=Dataset(schema="people(age BIGINT)", fingerprint=lambda key: "0" * 64),
... )
>>> charged = ledger.charge(Laplace(4.0), delta=0.0)
>>> now = ledger.entries()[0].time + timedelta(hours=1)
>>> (account,) = forecast(ledger, now=now, days=10)
>>> account.spent, account.left, account.used, account.lasts_until - now
({'epsilon': 0.25}, {'epsilon': 0.75}, 0.25, datetime.timedelta(days=30))
>>> ledger.close()
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, final

from sfumato import _check
from sfumato.ledger.budget.budget import Budget
from sfumato.ledger.budget.spent import Spent
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.log.entries import Entry

__all__ = ["AccountForecast", "FilterUse", "forecast"]

_FARTHEST: Final = 36_500.0
"""Days beyond which no end is stated."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FilterUse:
    """What one filter of a budget has added up, in its own unit.

    Parameters
    ----------
    name : str
        The filter's: ``"basic"``, ``"zcdp"``, ...
    spent, left : float
        The amount, rounded up and down.
    delta_spent, delta_left : float
        The mass, likewise.
    used : float
        The larger part of its two limits that is spent, from 0 to 1.
    days_left : float or None
        At the rate of late; None where that is nothing, or for ever.
    """

    name: str
    spent: float
    left: float
    delta_spent: float
    delta_left: float
    used: float
    days_left: float | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AccountForecast:
    """One account: of the dataset or of an analyst, of all time or of a period.

    Parameters
    ----------
    analyst, period : str
        "" for the dataset, and for all time.
    budget : str
        In words; "closed" for an analyst's account without one.
    charges : int
    spent, left : mapping of str to float
        In the units of a `Guarantee`, rounded up and down.
    used : float
        The part that is spent of the filter of which most is left: a charge need fit into one of them.
    filters : tuple of FilterUse
    lasts_until : datetime or None
        When nothing fits any more, if as much is spent a day as in the days before; None where nothing was
        spent in these, or it is a century away.
    """

    analyst: str
    period: str
    budget: str
    charges: int
    spent: dict[str, float]
    left: dict[str, float]
    used: float
    filters: tuple[FilterUse, ...]
    lasts_until: datetime | None

    def to_json(self) -> dict[str, Any]:
        """Return all of it as plain values, for a page or for JSON."""
        until = None if self.lasts_until is None else self.lasts_until.isoformat()
        return {**asdict(self), "lasts_until": until}


def forecast(ledger: Ledger, *, now: datetime, days: float = 30.0) -> tuple[AccountForecast, ...]:
    """Return what every account has spent and left, and until when it lasts.

    Parameters
    ----------
    ledger : Ledger
    now : datetime
        In UTC, with its zone.
    days : float
        How many days before ``now`` the rate is taken from.

    Returns
    -------
    tuple of AccountForecast
        The dataset's first, by period; then the analysts', by name.

    Raises
    ------
    ParameterError
        If ``days`` is not positive or too many, or ``now`` has no time zone.
    LedgerCorrupt, LedgerUnavailable
        As for `Ledger.entries`.
    """
    if _check.positive("days", days, "write 30, say") > _FARTHEST:
        _check.refuse("days", "be at most a century", days, "write 30, say")
    if now.tzinfo is None:
        _check.refuse("now", "have a time zone", now.isoformat(), "pass datetime.now(UTC)")
    entries = ledger.entries()
    found = []
    for period in _periods(ledger, entries):
        within = [entry for entry in entries if entry.period == period]
        facts = _Account("", period, ledger.budget, str(ledger.budget))
        found.append(_forecast(facts, within, now, days))
    for account in ledger.accounts():
        own = [entry for entry in entries if entry.analyst == account.analyst]
        budget = account.budget or ledger.budget
        words = "closed" if account.budget is None else str(account.budget)
        for period in _periods(ledger, own):
            within = [entry for entry in own if entry.period == period]
            facts = _Account(account.analyst, period, budget, words)
            found.append(_forecast(facts, within, now, days))
    return tuple(found)


def _periods(ledger: Ledger, entries: Iterable[Entry]) -> list[str]:
    """Return the periods that were charged; of a budget for all time, one without a name."""
    return [""] if ledger.renewal is None else sorted({entry.period for entry in entries})


class _Account(NamedTuple):
    """Whose account it is, and its budget."""

    analyst: str
    period: str
    budget: Budget
    words: str


def _forecast(account: _Account, entries: Sequence[Entry], now: datetime, days: float) -> AccountForecast:
    budget = account.budget
    filters, begin = budget.filters, now - timedelta(days=days)
    totals = filters.sum(entry.costs for entry in entries)
    recent = filters.sum(entry.costs for entry in entries if begin < entry.time <= now)
    left = filters.left(totals)
    uses = tuple(
        _use(member.name, amounts, days)
        for member, *amounts in zip(filters.members, totals, left, recent, strict=True)
    )
    ends = [use.days_left for use in uses]
    # A charge need fit into one filter, so the account lasts as long as the filter that lasts longest.
    lasting = [each for each in ends if each is not None]
    farthest = max(lasting) if len(lasting) == len(ends) else None
    return AccountForecast(
        analyst=account.analyst,
        period=account.period,
        budget=account.words,
        charges=len(entries),
        spent=filters.in_units(totals, up=True),
        left=filters.in_units(left, up=False),
        used=min(use.used for use in uses),
        filters=uses,
        lasts_until=None if farthest is None or account.words == "closed" else now + timedelta(days=farthest),
    )


def _use(name: str, amounts: Sequence[Spent], days: float) -> FilterUse:
    spent, left, recent = amounts
    pairs = [(spent.amount, left.amount, recent.amount), (spent.delta, left.delta, recent.delta)]
    parts = [_part(one, other) for one, other, _ in pairs]
    ends = [other * days / rate for _, other, rate in pairs if rate > 0]
    nearest = min(ends, default=math.inf)
    return FilterUse(
        name=name,
        spent=float(spent.amount),
        left=float(left.amount),
        delta_spent=float(spent.delta),
        delta_left=float(left.delta),
        used=max(parts),
        days_left=nearest if nearest < _FARTHEST else None,
    )


def _part(spent: float, left: float) -> float:
    """Return the part that is spent; all of it where nothing is left."""
    if not spent:
        return 0.0
    return 1.0 if math.isinf(spent) else float(spent) / (float(spent) + float(left))
