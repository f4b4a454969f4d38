"""The privacy budget of a dataset, and the ledger that records every charge to it before data is read.

>>> from sfumato.ledger import Budget
>>> print(Budget.approximate(epsilon=2.0, delta=1e-7))
(2, 1e-07)-DP

`Ledger` is where to start: it is opened on a file, on a PostgreSQL server or in memory, and refuses or
records each charge. `LedgerView` is the same ledger for one analyst, `Run` a training run that was charged
as a whole. A charge goes through three folders:

- `budget` prices it and checks that it fits: filters, budgets, renewal;
- `log` writes it down: a hash chain of events, with releases, verification and export;
- `store` makes that durable: SQLite and PostgreSQL.

Guarantee: all answers together, each charged before it is computed, satisfy the budget's guarantee, however
each depends on earlier answers (`sfumato.ledger.budget.filters` has the theorems).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato.ledger.budget.budget import Budget
    from sfumato.ledger.budget.individual_filter import IndividualFilter
    from sfumato.ledger.budget.odometer import Odometer
    from sfumato.ledger.budget.privacy_filter import PrivacyFilter
    from sfumato.ledger.budget.renewal import Renewal
    from sfumato.ledger.budget.spent import Spent
    from sfumato.ledger.identity import Dataset
    from sfumato.ledger.ledger import Ledger
    from sfumato.ledger.log.accounts import AnalystAccount
    from sfumato.ledger.log.approval import Approval
    from sfumato.ledger.log.chain_head import ChainHead
    from sfumato.ledger.log.entries import Entry
    from sfumato.ledger.log.export import LedgerExport
    from sfumato.ledger.log.member_events import Role
    from sfumato.ledger.log.member_roll import Member
    from sfumato.ledger.log.review_roll import Review, ReviewStep
    from sfumato.ledger.log.verification import Verification
    from sfumato.ledger.members import Members
    from sfumato.ledger.reviews import Reviews
    from sfumato.ledger.runs import Run
    from sfumato.ledger.view import LedgerView

__all__ = [
    "AnalystAccount",
    "Approval",
    "Budget",
    "ChainHead",
    "Dataset",
    "Entry",
    "IndividualFilter",
    "Ledger",
    "LedgerExport",
    "LedgerView",
    "Member",
    "Members",
    "Odometer",
    "PrivacyFilter",
    "Renewal",
    "Review",
    "ReviewStep",
    "Reviews",
    "Role",
    "Run",
    "Spent",
    "Verification",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        "AnalystAccount": "sfumato.ledger.log.accounts",
        "Approval": "sfumato.ledger.log.approval",
        "Member": "sfumato.ledger.log.member_roll",
        "Members": "sfumato.ledger.members",
        "Review": "sfumato.ledger.log.review_roll",
        "ReviewStep": "sfumato.ledger.log.review_roll",
        "Reviews": "sfumato.ledger.reviews",
        "Role": "sfumato.ledger.log.member_events",
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
        "Spent": "sfumato.ledger.budget.spent",
        "Verification": "sfumato.ledger.log.verification",
    },
)
