"""Budgets, filters, receipts and their store: what refuses or records a charge before anything is read.

>>> from sfumato.ledger import Budget
>>> print(Budget.approximate(epsilon=2.0, delta=1e-7))
(2, 1e-07)-DP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.ledger.accounts import AnalystAccount
    from sfumato.ledger.budget import Budget
    from sfumato.ledger.entry import Entry
    from sfumato.ledger.export import LedgerExport
    from sfumato.ledger.filters import Spent
    from sfumato.ledger.head import Head
    from sfumato.ledger.identity import Dataset
    from sfumato.ledger.in_memory import PrivacyFilter
    from sfumato.ledger.individual import IndividualFilter
    from sfumato.ledger.ledger import Ledger
    from sfumato.ledger.odometer import Odometer
    from sfumato.ledger.renewal import Renewal
    from sfumato.ledger.runs import Run
    from sfumato.ledger.verification import Verification
    from sfumato.ledger.view import LedgerView

__all__ = [
    "AnalystAccount",
    "Budget",
    "Dataset",
    "Entry",
    "Head",
    "IndividualFilter",
    "Ledger",
    "LedgerExport",
    "LedgerView",
    "Odometer",
    "PrivacyFilter",
    "Renewal",
    "Run",
    "Spent",
    "Verification",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "AnalystAccount": "sfumato.ledger.accounts",
        "LedgerExport": "sfumato.ledger.export",
        "LedgerView": "sfumato.ledger.view",
        "Budget": "sfumato.ledger.budget",
        "Dataset": "sfumato.ledger.identity",
        "Entry": "sfumato.ledger.entry",
        "Head": "sfumato.ledger.head",
        "IndividualFilter": "sfumato.ledger.individual",
        "Ledger": "sfumato.ledger.ledger",
        "Odometer": "sfumato.ledger.odometer",
        "PrivacyFilter": "sfumato.ledger.in_memory",
        "Renewal": "sfumato.ledger.renewal",
        "Run": "sfumato.ledger.runs",
        "Spent": "sfumato.ledger.filters",
        "Verification": "sfumato.ledger.verification",
    },
)
