"""A filter without a file: for simulations, for training loops, for a service that has its own records.

The stopping rules are those of the durable ledger, in `sfumato.ledger.budget.filters`; only the store is left
out.
"""

from __future__ import annotations

import os
import threading
from functools import lru_cache
from typing import final

from sfumato import _check
from sfumato.errors import LedgerUnavailable
from sfumato.ledger.budget.budget import Budget
from sfumato.ledger.budget.budget_check import Balance, budget_exceeded, price_of, remaining_of
from sfumato.ledger.budget.spent import Spent
from sfumato.privacy.guarantee import Guarantee
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["PrivacyFilter"]


@final
class PrivacyFilter:
    """Accepts charges while a budget lasts, in memory only.

    Parameters
    ----------
    budget : Budget
        What may be spent in all.
    neighboring : Neighboring
        The relation of all charges.

    Notes
    -----
    Guarantee: whatever is charged, and however mechanisms and their parameters depend on earlier answers, all
    answers together satisfy the budget's guarantee, if each is charged before it is computed. The theorems
    are those named in `sfumato.ledger.budget.filters`. A charge costs a few additions, however many there
    were; what a repeated loss costs is worked out once. Safe between threads; a forked process is refused,
    which would spend the same budget twice. Where an answer must be recorded durably, use a `Ledger`.

    Examples
    --------
    >>> from sfumato.privacy import Laplace
    >>> account = PrivacyFilter(Budget.pure(epsilon=1.0))
    >>> for _ in range(10):
    ...     account.charge(Laplace(20.0))
    >>> print(account.spent())
    0.5-DP, add/remove one unit
    >>> account.would_accept(Laplace(1.0))
    False
    """

    def __init__(self, budget: Budget, *, neighboring: Neighboring = Neighboring.ADD_REMOVE) -> None:
        _check.instance("budget", budget, Budget, "pass Budget.approximate(epsilon=..., delta=...)")
        self.budget = budget
        self.neighboring = neighboring
        self._filters = budget.filters
        self._totals = self._filters.nothing
        self._charges = 0
        self._price = lru_cache(maxsize=4096)(self._priced)
        self._process = os.getpid()
        self._lock = threading.Lock()

    @property
    def charges(self) -> int:
        """How many charges were accepted."""
        return self._charges

    def charge(self, loss: PrivacyLoss, *, delta: float = 0.0) -> None:
        """Accept a charge, or refuse it and change nothing.

        Parameters
        ----------
        loss : PrivacyLoss
            What will be run.
        delta : float
            Where the charge's own guarantee is read; an (epsilon, delta) budget charges it to one of its
            filters.

        Raises
        ------
        BudgetExceeded
            The charge does not fit.
        NeighboringMismatch
            The loss is about another relation.
        ParameterError
            An (epsilon, delta) budget is asked at a delta at which the loss has no finite epsilon.
        """
        cost = self._price(loss, delta)
        if os.getpid() != self._process:
            raise LedgerUnavailable(
                "filter must be used in the process that made it, got a forked one, where both would "
                "spend the same budget; use a Ledger in a file"
            )
        with self._lock:
            totals = self._filters.after(self._totals, cost)
            if self._filters.hold(totals):
                self._totals, self._charges = totals, self._charges + 1
                return
            spent = self._totals
        raise budget_exceeded(self.neighboring, (Balance(self.budget, spent),), cost, delta)

    def would_accept(self, loss: PrivacyLoss, *, delta: float = 0.0) -> bool:
        """Whether `charge` would accept this loss now.

        Parameters
        ----------
        loss : PrivacyLoss
            What would be run.
        delta : float
            As for `charge`.

        Returns
        -------
        bool
        """
        return self._filters.hold(self._filters.after(self._totals, self._price(loss, delta)))

    def spent(self) -> Guarantee:
        """Return the totals, each in its filter's unit, rounded up.

        Returns
        -------
        Guarantee
        """
        return Guarantee(neighboring=self.neighboring, **self._filters.in_units(self._totals, up=True))

    def remaining(self, delta: float = 0.0) -> Guarantee:
        """Return what is left, as `Ledger.remaining` does.

        Parameters
        ----------
        delta : float
            Where the epsilon of one more answer is read.

        Returns
        -------
        Guarantee
        """
        return remaining_of(
            self.neighboring, (Balance(self.budget, self._totals),), _check.probability("delta", delta)
        )

    def _priced(self, loss: PrivacyLoss, delta: float) -> tuple[Spent, ...]:
        return price_of(self, loss, delta).cost

    def __repr__(self) -> str:
        return f"<PrivacyFilter of {self.budget}, {self._charges} charges>"
