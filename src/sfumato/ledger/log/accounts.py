"""Accounts within a ledger: what each analyst, and each period of a budget that renews, has spent.

Nothing is stored for an account but the events that name it: what it has spent is the sum of their costs.
A process adds up each event once, when it first reads on, so a charge to an account costs no more as the log
grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sfumato import _check
from sfumato.errors import LedgerMismatch
from sfumato.ledger.budget.budget import Budget
from sfumato.ledger.budget.budget_check import Balance
from sfumato.ledger.budget.combined_filters import Filters
from sfumato.ledger.budget.renewal import check_period
from sfumato.ledger.budget.spent import Spent
from sfumato.ledger.failures import NOTHING_CHARGED
from sfumato.ledger.identity import Identity
from sfumato.ledger.log.event_log import LogFollower, Snapshot
from sfumato.ledger.log.events import AccountKey, Body, Charged
from sfumato.ledger.log.member_events import AccountSet
from sfumato.ledger.store.base import Read

__all__ = ["AccountBook", "AccountTotals", "AnalystAccount", "check_budget"]


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

    Examples
    --------
    >>> from sfumato.ledger import AnalystAccount, Budget
    >>> AnalystAccount(analyst="ada", budget=Budget.pure(epsilon=0.5), charges=3, periods=()).charges
    3
    """

    analyst: str
    budget: Budget | None
    charges: int
    periods: tuple[str, ...]


def check_budget(budget: Budget, whole: Budget) -> None:
    """Refuse an analyst's budget of another kind than the dataset's: a charge has one price."""
    if not isinstance(budget, Budget):
        _check.refuse_type(
            "budget",
            "be a Budget, or None to close the account",
            budget,
            "pass one of the dataset's kind, such as Budget.pure(epsilon=0.5)",
        )
    names = [member.name for member in budget.filters.members]
    if budget.kind != whole.kind or names != [member.name for member in whole.filters.members]:
        _check.refuse_state(
            "budget",
            f"be of the dataset's kind, which is {whole}",
            f"it is {budget}",
            "make it by the same constructor (with the same orders)",
        )


class AccountTotals:
    """The budgets of all accounts and what each has spent.

    Parameters
    ----------
    filters : Filters
        Those of the dataset's budget: every account counts in their units.
    """

    def __init__(self, filters: Filters) -> None:
        self.budgets: dict[str, Budget | None] = {}
        self._filters = filters
        self._charges: dict[str, int] = {}
        self._totals: dict[AccountKey, tuple[Spent, ...]] = {}

    def take(self, body: Body) -> None:
        """Add what an event says of accounts."""
        if isinstance(body, Charged):
            self.add(body.accounts, body.costs)
        elif isinstance(body, AccountSet):
            self.budgets[body.analyst] = body.budget

    def add(self, keys: Iterable[AccountKey], cost: tuple[Spent, ...]) -> None:
        """Add a charge to accounts."""
        for key in keys:
            self._totals[key] = self._filters.after(self._spent(key), cost)
            self._charges[key.analyst] = self._charges.get(key.analyst, 0) + 1

    def analysts(self) -> tuple[AnalystAccount, ...]:
        """Return the accounts of all analysts, by name."""
        return tuple(
            AnalystAccount(
                analyst=analyst,
                budget=budget,
                charges=self._charges.get(analyst, 0),
                periods=self._periods(analyst),
            )
            for analyst, budget in sorted(self.budgets.items())
        )

    def dataset_holds(self, filters: Filters) -> bool:
        """Whether the dataset's account, of all time or of each period, is within the limits of filters."""
        return all(filters.hold(totals) for key, totals in self._totals.items() if not key.analyst)

    def balance(self, key: AccountKey, whole: Budget) -> Balance:
        """Return an account's budget with what was spent of it; ``whole`` is the dataset's budget.

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
        return Balance(budget, self._spent(key), f"{owner}{within}")

    def _spent(self, key: AccountKey) -> tuple[Spent, ...]:
        return self._totals.get(key, self._filters.nothing)

    def _periods(self, analyst: str) -> tuple[str, ...]:
        return tuple(sorted(key.period for key in self._totals if key.analyst == analyst and key.period))


class AccountBook:
    """The budgets of a ledger and what was spent of each, by the events that this process has read.

    Parameters
    ----------
    identity : Identity
        What the ledger was made for.
    """

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._totals = AccountTotals(identity.budget.filters)
        self._follower = LogFollower()

    def balances(self, snapshot: Snapshot, key: AccountKey) -> tuple[Balance, ...]:
        """Return the budgets that a charge must fit into: the dataset's, and then the analyst's."""
        identity = self._identity
        check_period(identity.renewal, key.period)
        totals = self.totals(snapshot)
        if identity.renewal is None:
            # The last event says what was spent of the one budget for all time.
            dataset = Balance(identity.budget, snapshot.end.totals.spent)
        else:
            dataset = totals.balance(key.charged[0], identity.budget)
        return (dataset, *(totals.balance(each, identity.budget) for each in key.charged[1:]))

    def ahead(self) -> Sequence[Read]:
        """Return what `balances` will read, if it has read before: then it reads on."""
        return self._follower.ahead()

    def totals(self, snapshot: Snapshot) -> AccountTotals:
        """Return the totals of all accounts now, after reading on; a ledger without accounts is not read."""
        if snapshot.end.totals.accounts or self._identity.renewal is not None:
            for _, body, _ in self._follower.new_events(snapshot):
                self._totals.take(body)
        return self._totals
