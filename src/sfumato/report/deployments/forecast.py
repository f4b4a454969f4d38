"""How long a budget lasts, if all goes on as so far: an estimate from what was charged, and when."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from sfumato.ledger.budget.budget import Budget
from sfumato.ledger.budget.spent import Spent
from sfumato.ledger.log.entries import Entry
from sfumato.numerics.decimals import decimal_of

__all__ = ["Forecast", "forecast_of"]

_FURTHEST: Final = dt.timedelta(days=36525)
"""A hundred years: what lies beyond has no date."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """How many more charges like the average one fit, and until when at the pace so far.

    Parameters
    ----------
    charges : int
        From how many charges it follows.
    more : int or None
        How many more fit; None where charges so far cost nothing.
    until : datetime.date or None
        The day of the last of them; None with one charge, and where it is over a hundred years off.
    """

    charges: int
    more: int | None
    until: dt.date | None


def forecast_of(budget: Budget, entries: Sequence[Entry]) -> Forecast | None:
    """Return a forecast, None without charges.

    Parameters
    ----------
    budget : Budget
    entries : sequence of Entry
        All that were charged to it, in order.

    Notes
    -----
    Guarantee: none. It extends the mean cost and the mean time between charges by a straight line; of several
    filters the one that lasts longest counts, since a charge need fit into one of them.
    """
    if not entries:
        return None
    filters = budget.filters
    totals = filters.sum(entry.costs for entry in entries)
    count, rest = len(entries), filters.left(totals)
    each = [_more(left, total, count) for left, total in zip(rest, totals, strict=True)]
    known = [more for more in each if more is not None]
    if len(known) < len(each):
        return Forecast(charges=count, more=None, until=None)
    most = max(known)
    until = None
    if count > 1:
        passed = entries[-1].time - entries[0].time
        seconds = Fraction(passed.total_seconds()) * most / (count - 1)
        if seconds <= _FURTHEST.total_seconds():
            until = (entries[-1].time + dt.timedelta(seconds=float(seconds))).date()
    return Forecast(charges=count, more=math.floor(most), until=until)


def _more(left: Spent, total: Spent, count: int) -> Fraction | None:
    """Return how many charges of the mean cost fit into what one filter has left; None if they are free."""
    if math.isinf(total.amount):
        return Fraction(0)
    parts = ((left.amount, total.amount), (left.delta, total.delta))
    fitting = [decimal_of(rest) / decimal_of(spent) * count for rest, spent in parts if spent > 0]
    return min(fitting, default=None)
