"""Accounts within a ledger: of analysts, and of periods, added up from the chain itself.

Nothing is stored for them but the events: what an account has spent is the sum of the charges that name it.
A process adds up each event once, when it first reads on, so that a charge costs no more as the log grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sfumato import _check
from sfumato.errors import LedgerMismatch
from sfumato.ledger.budget.budget import Budget
from sfumato.ledger.budget.budget_check import Holding
from sfumato.ledger.budget.filters import Filters, Spent
from sfumato.ledger.failures import NOTHING_CHARGED
from sfumato.ledger.log.event_log import ACCOUNT, CHARGE, content_of, corrupt, decode_spent
from sfumato.ledger.log.hash_chain import GENESIS, Event

__all__ = ["AnalystAccount", "Books", "Key", "account_content", "check_analyst", "check_budget", "keys_of"]

LONGEST_NAME = 200


class Key(NamedTuple):
    """An account: an analyst's, or with "" the dataset's; of one period, or with "" of all time."""

    analyst: str
    period: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalystAccount:
    """One analyst's account.

    Attributes
    ----------
    analyst : str
        The analyst's name.
    budget : Budget or None
        What they may spend, in all or in each period; None once the account is closed.
    charges : int
        How many charges name them.
    periods : tuple of str
        The periods that they charged, where the budget renews.
    """

    analyst: str
    budget: Budget | None
    charges: int
    periods: tuple[str, ...]


def keys_of(content: Mapping[str, Any]) -> tuple[Key, ...]:
    """Return the accounts that a charge is added to."""
    analyst, period = content.get("analyst", ""), content.get("period", "")
    return (Key("", period), Key(analyst, period)) if analyst else (Key("", period),)


def check_analyst(analyst: str) -> str:
    """Return an analyst's name, or refuse what is none."""
    given: object = analyst
    if (
        not isinstance(given, str)
        or not given.strip()
        or len(given) > LONGEST_NAME
        or not given.isprintable()
    ):
        rule = f"be a printable name of at most {LONGEST_NAME} characters"
        _check.refuse("analyst", rule, given, "pass 'ada', say")
    return analyst


def check_budget(budget: Budget, whole: Budget) -> None:
    """Refuse an analyst's budget that is not counted as the dataset's is: a charge has one price."""
    if not isinstance(budget, Budget):
        _check.refuse("budget", "be a Budget, or None to close the account", type(budget).__name__)
    kinds = [member.name for member in budget.filters.members]
    if budget.kind != whole.kind or kinds != [member.name for member in whole.filters.members]:
        _check.refuse(
            "budget",
            f"be of the dataset's kind, which is {whole}",
            str(budget),
            "make it by the same constructor (with the same orders)",
        )


def account_content(analyst: str, budget: Budget | None, whole: Budget) -> dict[str, object]:
    """Return the body of the event that opens an account, or changes or closes it."""
    if budget is not None:
        check_budget(budget, whole)
    return {"analyst": analyst, "budget": None if budget is None else budget.to_json()}


class Books:
    """What all accounts have spent, by the events up to one position.

    Parameters
    ----------
    filters : Filters
        Those of the dataset's budget: every account counts in their units.
    """

    def __init__(self, filters: Filters) -> None:
        self.position = 0
        self.budgets: dict[str, Budget | None] = {}
        self.charges: dict[str, int] = {}
        self._digest = GENESIS
        self._filters = filters
        self._totals: dict[Key, tuple[Spent, ...]] = {}

    def read_on(self, events: Iterable[Event]) -> None:
        """Take the events that follow those seen so far, checking every link."""
        for event in events:
            if event.position != self.position + 1 or event.previous != self._digest or not event.intact:
                raise corrupt("be an unbroken chain of events", f"a break at event {event.position}")
            self.take(event, content_of(event))
            self.position, self._digest = event.position, event.digest

    def take(self, event: Event, content: Mapping[str, Any]) -> None:
        """Add up one event."""
        try:
            if event.kind == CHARGE:
                self.add(keys_of(content), decode_spent(content["costs"]))
            elif event.kind == ACCOUNT:
                fields = content["budget"]
                self.budgets[content["analyst"]] = None if fields is None else Budget.from_json(fields)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise corrupt("hold readable events", f"an unreadable event {event.position}") from error

    def add(self, keys: Iterable[Key], cost: tuple[Spent, ...]) -> None:
        """Add a charge to accounts."""
        for key in keys:
            self._totals[key] = self._filters.after(self.spent(key), cost)
            self.charges[key.analyst] = self.charges.get(key.analyst, 0) + 1

    def spent(self, key: Key) -> tuple[Spent, ...]:
        """Return what an account has spent."""
        return self._totals.get(key, self._filters.nothing)

    def periods(self, analyst: str = "") -> tuple[str, ...]:
        """Return the periods that were charged to an analyst, or at all, in order."""
        return tuple(sorted(key.period for key in self._totals if key.analyst == analyst))

    def dataset_holds(self, filters: Filters) -> bool:
        """Whether the dataset's account, of all time or of each period, is within the limits of filters."""
        return all(filters.hold(totals) for key, totals in self._totals.items() if not key.analyst)

    def holding(self, key: Key, whole: Budget) -> Holding:
        """Return an account with its budget.

        Raises
        ------
        LedgerMismatch
            The analyst has no account, or it was closed.
        """
        budget, owner = whole, ""
        if key.analyst:
            own = self.budgets.get(key.analyst)
            if own is None:
                closed = "one whose account was closed" if key.analyst in self.budgets else "another"
                raise LedgerMismatch(
                    f"analyst must be one with an account in the ledger, got {closed}, {key.analyst!r}; "
                    f"{NOTHING_CHARGED}; let the curator open one: Ledger.manage(...).grant(analyst, budget)"
                )
            budget, owner = own, f" of analyst {key.analyst!r}"
        within = f" for {key.period}" if key.period else ""
        return Holding(budget, self.spent(key), f"{owner}{within}")
