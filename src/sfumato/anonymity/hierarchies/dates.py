"""Dates by month, quarter, year and decade."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, final

from sfumato import _check
from sfumato.anonymity.hierarchies.hierarchy import SUPPRESSED, GeneralizationHierarchy

__all__ = ["Dates"]

_UNITS: Final[Mapping[str, Callable[[dt.date], str]]] = MappingProxyType(
    {
        "day": lambda day: day.isoformat(),
        "month": lambda day: f"{day.year:04}-{day.month:02}",
        "quarter": lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
        "year": lambda day: f"{day.year:04}",
        "decade": lambda day: f"{day.year // 10:03}0s",
    }
)


@final
@dataclass(frozen=True, slots=True)
class Dates:
    """Dates or times by ever longer spans of the calendar, and ``*`` on top.

    Parameters
    ----------
    units : sequence of str
        Some of day, month, quarter, year and decade, in this order.

    Raises
    ------
    ParameterError
        If a unit is unknown, or units do not grow.

    Examples
    --------
    >>> Dates(("month", "year")).hierarchy(["1999-12-31", "2000-01-01"]).labels[1]
    ('1999-12', '2000-01')
    """

    units: Sequence[str] = ("month", "quarter", "year", "decade")

    def __post_init__(self) -> None:
        if not self.units or tuple(self.units) != tuple(unit for unit in _UNITS if unit in self.units):
            _check.refuse(
                "units", f"be some of {', '.join(_UNITS)}, in this order", tuple(self.units), "name them so"
            )

    def hierarchy(self, values: Sequence[str]) -> GeneralizationHierarchy:
        """Return a hierarchy of these values, in this order.

        Parameters
        ----------
        values : sequence of str

        Returns
        -------
        GeneralizationHierarchy

        Raises
        ------
        ParameterError
            If a value is no date.
        """
        days = [_date(value) for value in values]
        levels = [[_UNITS[unit](day) for day in days] for unit in self.units]
        return GeneralizationHierarchy.from_rows(
            zip(values, *levels, [SUPPRESSED] * len(values), strict=True)
        )


def _date(value: str) -> dt.date:
    try:
        return dt.date.fromisoformat(value.strip()[:10])
    except ValueError:
        _check.refuse(
            "dates", "be of a column of dates as YYYY-MM-DD", value, "name another hierarchy for it"
        )
