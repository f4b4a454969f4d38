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
    from sfumato.ledger.budget.budget import Budget
    from sfumato.ledger.budget.filters import Spent
    from sfumato.ledger.budget.individual_filter import IndividualFilter
    from sfumato.ledger.budget.odometer import Odometer
    from sfumato.ledger.budget.privacy_filter import PrivacyFilter
    from sfumato.ledger.budget.renewal import Renewal
    from sfumato.ledger.identity import Dataset
    from sfumato.ledger.ledger import Ledger
    from sfumato.ledger.log.chain_head import ChainHead
    from sfumato.ledger.log.entries import Entry
    from sfumato.ledger.log.export import LedgerExport
    from sfumato.ledger.log.verification import Verification
    from sfumato.ledger.runs import Run
    from sfumato.ledger.view import LedgerView

__all__ = [
    "AnalystAccount",
    "Budget",
    "ChainHead",
    "Dataset",
    "Entry",
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
        "LedgerExport": "sfumato.ledger.log.export",
        "LedgerView": "sfumato.ledger.view",
        "Budget": "sfumato.ledger.budget.budget",
        "Dataset": "sfumato.ledger.identity",
        "Entry": "sfumato.ledger.log.entries",
        "ChainHead": "sfumato.ledger.log.chain_head",
        "IndividualFilter": "sfumato.ledger.budget.individual_filter",
        "Ledger": "sfumato.ledger.ledger",
        "Odometer": "sfumato.ledger.budget.odometer",
        "PrivacyFilter": "sfumato.ledger.budget.privacy_filter",
        "Renewal": "sfumato.ledger.budget.renewal",
        "Run": "sfumato.ledger.runs",
        "Spent": "sfumato.ledger.budget.filters",
        "Verification": "sfumato.ledger.log.verification",
    },
)
