"""What a ledger is for: the same for its curator, for an analyst, and for all who look."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfumato.ledger.budget.budget import Budget
from sfumato.ledger.budget.renewal import Renewal
from sfumato.ledger.identity import Identity
from sfumato.ledger.store.base import Store
from sfumato.privacy.neighboring import Neighboring

__all__ = ["LedgerFacts"]


class LedgerFacts:
    """What was fixed when a ledger was made, and where it is; base of `Ledger` and `LedgerView`."""

    __slots__ = ("_identity", "_store", "_version")

    def __init__(self, identity: Identity, store: Store[Any], version: int) -> None:
        self._identity = identity
        self._store = store
        self._version = version

    @property
    def budget(self) -> Budget:
        """What may be spent in all, with the split it was made with."""
        return self._identity.budget

    @property
    def renewal(self) -> Renewal | None:
        """How the budget renews; None if it is one for all time."""
        return self._identity.renewal

    @property
    def privacy_unit(self) -> str:
        """What one unit is; where the budget renews, ``(unit, period)``."""
        return self._identity.protects

    @property
    def neighboring(self) -> Neighboring:
        """How two datasets that must look alike may differ."""
        return self._identity.neighboring

    @property
    def ledger_id(self) -> str:
        """The random id that receipts and heads carry."""
        return self._identity.ledger

    @property
    def dataset_id(self) -> str:
        """The random id of the dataset, whatever its version."""
        return self._identity.dataset

    @property
    def version(self) -> int:
        """Version of the dataset that this ledger was opened with, from 1."""
        return self._version

    @property
    def simulated(self) -> bool:
        """Whether the ledger takes simulated noise and so protects nobody."""
        return self._identity.simulated

    @property
    def path(self) -> Path | None:
        """The file, or None in memory or on a server."""
        return self._store.path

    @property
    def durable(self) -> bool:
        """Whether the ledger is still there when the process ends: it is not in memory."""
        return self._store.durable
