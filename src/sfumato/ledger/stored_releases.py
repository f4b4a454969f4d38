"""Stored releases as values again: which class reads the bytes that a room above committed.

The ledger stores bytes and knows nothing of what they say. So that ``ledger.release(number)`` can return a
table, the formats are named here with the classes that read them, which are imported when one is read: like
the face of a package, this is a table of names, and no code of the ledger depends on what is behind them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final, Protocol

from sfumato import _check
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.receipt import Receipt

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["StoredRelease", "read_release"]

_READERS: Final = (
    (b"\xff\xff\xff\xff", "sfumato.queries.release.table", "TableRelease"),
    (b'"format":"sfumato.limit-histograms"', "sfumato.queries.planner.limit_record", "LimitsRecord"),
    (b'"format":"sfumato.evaluation-record"', "sfumato.learning.reports.evaluation", "EvaluationRecord"),
    (b'"format":"sfumato.synthetic-release"', "sfumato.synthetic.releases.release_record", "SyntheticRecord"),
)
"""Bytes that a payload of each kind holds, an Arrow stream's first, and who reads it by ``from_payload``."""


class StoredRelease(Protocol):
    """A release that was read back: a `TableRelease`, or the record of another kind of release."""

    @property
    def epsilon(self) -> float:
        """Epsilon of this release alone."""
        ...

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger was charged."""
        ...

    @property
    def privacy_unit(self) -> str:
        """Who is protected."""
        ...

    @property
    def simulated(self) -> bool:
        """True if the noise came from a seed."""
        ...

    def to_arrow(self) -> pa.Table:
        """Return the released numbers."""
        ...


def read_release(payload: bytes, receipt: Receipt) -> StoredRelease:
    """Read what was committed with a charge.

    Parameters
    ----------
    payload : bytes
        As it was committed.
    receipt : Receipt
        Of its charge.

    Raises
    ------
    ParameterError
        If it is no table, such as the name of a counter that was begun.
    LedgerUnavailable
        If only a later version of sfumato knows its format.
    """
    homes = (home for mark, *home in _READERS if mark in payload)
    module, name = next(homes, (None, None))
    if module is None or name is None:
        found = "it began a counter, whose releases lie in the counter's state"
        remedy = "open the counter again"
        _check.refuse_state(f"charge {receipt.sequence}", "have a table stored", found, remedy)
    reader: Any = getattr(importlib.import_module(module), name)
    read: StoredRelease = reader.from_payload(payload, receipt)
    return read
