"""sfumato: differential privacy for Python; the picture stays, no single outline can be found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._lazy import attach

if TYPE_CHECKING:
    from sfumato import audit, errors, ledger, mechanisms, numerics, privacy, queries
    from sfumato.privacy.neighboring import Neighboring
    from sfumato.queries.session import Session, connect
    from sfumato.queries.sources import ROW

__all__ = [
    "ROW",
    "Neighboring",
    "Session",
    "audit",
    "connect",
    "errors",
    "ledger",
    "mechanisms",
    "numerics",
    "privacy",
    "queries",
]

__version__ = "0.1.0"

__getattr__, __dir__ = attach(
    __name__,
    {
        "ROW": "sfumato.queries.sources",
        "Neighboring": "sfumato.privacy.neighboring",
        "Session": "sfumato.queries.session",
        "audit": "",
        "connect": "sfumato.queries.session",
        "errors": "",
        "ledger": "",
        "mechanisms": "",
        "numerics": "",
        "privacy": "",
        "queries": "",
    },
)
