"""The accounts of a ledger, added up from its chain: each event once, when a process first reads on.

So a charge to an account costs no more as the log grows.
"""

from __future__ import annotations

from sfumato.ledger.accounts import AccountKey, AccountTotals
from sfumato.ledger.budget.budget_check import Balance
from sfumato.ledger.budget.renewal import check_period
from sfumato.ledger.failures import corrupt, unreadable
from sfumato.ledger.identity import Identity
from sfumato.ledger.log.event_log import Snapshot, events_after
from sfumato.ledger.log.events import AccountSet, Body, Charged, body_of
from sfumato.ledger.log.hash_chain import GENESIS

__all__ = ["AccountBook", "add_event"]


def add_event(totals: AccountTotals, body: Body) -> None:
    """Add what an event says of accounts."""
    if isinstance(body, Charged):
        totals.add(body.accounts, body.costs)
    elif isinstance(body, AccountSet):
        totals.budgets[body.analyst] = body.budget


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
        self._position, self._digest = 0, GENESIS

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

    def totals(self, snapshot: Snapshot) -> AccountTotals:
        """Return the totals of all accounts now, after reading on; a ledger without accounts is not read."""
        end, renews = snapshot.end, self._identity.renewal is not None
        if (end.totals.accounts or renews) and self._position < end.event.position:
            self._read_on(snapshot)
        return self._totals

    def _read_on(self, snapshot: Snapshot) -> None:
        """Take the events that follow those read so far, checking every link."""
        for event in events_after(snapshot.connection, self._position):
            if event.position != self._position + 1 or event.previous != self._digest or not event.intact:
                raise corrupt("be an unbroken chain of events", f"a break at event {event.position}")
            try:
                add_event(self._totals, body_of(event))
            except ValueError as error:
                raise unreadable(event.position) from error
            self._position, self._digest = event.position, event.digest
