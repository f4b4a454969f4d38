"""Counts of records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from sfumato.mechanisms.query import Query
from sfumato.mechanisms.records import as_records
from sfumato.mechanisms.shift import Shift
from sfumato.privacy.neighboring import Neighboring

__all__ = ["Count"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Count(Query):
    """The number of records.

    Notes
    -----
    Sensitivity 1 in every norm and under each relation. Under replace-one the number of all records is public
    and would not move at all; the 1 is for the records that passed a filter, which a replacement may leave.

    Examples
    --------
    >>> import numpy as np
    >>> Count()(np.array([3.0, 1.0, 2.0]))
    3
    """

    @property
    def step(self) -> int:
        """One."""
        return 1

    @property
    def entries(self) -> int:
        """One number."""
        return 1

    def steps(self, data: Any) -> int:
        """Return the number of records."""
        return len(as_records(data))

    def shift(self, neighboring: Neighboring) -> Shift:
        """One record moves a count by one."""
        return Shift.entries(1, 1)
