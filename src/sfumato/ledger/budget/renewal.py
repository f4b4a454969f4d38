"""Budgets that renew: what is protected is a unit within a period, and each period has the whole budget."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sfumato import _check
from sfumato._wire import TEXT, Names, Record

__all__ = ["RENEWAL", "Renewal", "check_period"]

_PATTERNS = {
    "day": r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})",
    "week": r"(?P<year>\d{4})-W(?P<week>\d{2})",
    "month": r"(?P<year>\d{4})-(?P<month>\d{2})",
    "quarter": r"(?P<year>\d{4})-Q(?P<quarter>[1-4])",
    "year": r"(?P<year>\d{4})",
}
_EXAMPLES = {
    "day": "2026-01-31",
    "week": "2026-W05",
    "month": "2026-01",
    "quarter": "2026-Q1",
    "year": "2026",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """How a budget renews: with each calendar period, of the time that a row itself states.

    A ledger with a renewal has one budget *for each period*. A question is about the rows of one period, by
    the timestamp in the rows, and is charged to that period, whenever it is asked: the passing of time gives
    nothing back, and a period that is used up stays so.

    Parameters
    ----------
    every : str
        ``"day"``, ``"week"`` (from Monday, ISO 8601), ``"month"``, ``"quarter"`` or ``"year"``.
    column : str
        The column with a row's date or timestamp; a timestamp is read as it stands, so store them in UTC.

    Notes
    -----
    Guarantee: the budget's, for adding or removing *all rows of one unit within one period*. Condition: a
    charge for a period is for an answer that depends on that period's rows only; rows without a time are in
    none. Then a change within a period changes the answers charged to it and no others, and the filter of
    that period bounds these, by the same theorems (see `sfumato.ledger.budget.filters`): answers about other
    periods are a part of what the adversary knows, and of how the next question is chosen. A unit with rows
    in several periods is protected as a whole only by the sum over all periods, the *lifetime sum*, which has
    no limit; every receipt shows it.

    Why one period and not several: removing a unit's rows of one period leaves their others, and so may
    change which of these remain when contributions are bounded. Such a change could move one answer over
    two periods by up to twice its epsilon.

    Examples
    --------
    >>> import datetime as dt
    >>> monthly = Renewal(every="month", column="visited")
    >>> monthly.period_of(dt.date(2026, 2, 14)), str(monthly.first_day("2026-02")), monthly.words
    ('2026-02', '2026-02-01', 'month of visited')
    """

    every: str
    column: str

    def __post_init__(self) -> None:
        every: object = self.every
        if every not in _PATTERNS:
            _check.refuse("every", f"be one of {', '.join(_PATTERNS)}", every, "pass 'month', say")
        column: object = self.column
        if not isinstance(column, str) or not column:
            _check.refuse("column", "be a non-empty text", column, "name the column with a row's time")

    def __str__(self) -> str:
        return f"for each {self.words}"

    @property
    def words(self) -> str:
        """The period, for people."""
        return f"{self.every} of {self.column}"

    def period_of(self, day: dt.date) -> str:
        """Return the name of the period that a day is in.

        Parameters
        ----------
        day : datetime.date
            A day, in UTC.

        Returns
        -------
        str
            Such as ``2026-02`` for a month.
        """
        if self.every == "week":
            year, week, _ = day.isocalendar()
            return f"{year:04}-W{week:02}"
        if self.every == "quarter":
            return f"{day.year:04}-Q{(day.month + 2) // 3}"
        length = {"day": 10, "month": 7, "year": 4}[self.every]
        return f"{day.year:04}-{day.month:02}-{day.day:02}"[:length]

    def first_day(self, period: str) -> dt.date:
        """Return the first day of a period.

        Parameters
        ----------
        period : str
            As `period_of` names it.

        Returns
        -------
        datetime.date

        Raises
        ------
        ParameterError
            The period is none, or one of another length.
        """
        given: object = period
        found = re.fullmatch(_PATTERNS[self.every], given, re.ASCII) if isinstance(given, str) else None
        first = None if found is None else _first(found.groupdict())
        if first is None:
            _check.refuse("period", f"be a {self.every}", given, f"write {_EXAMPLES[self.every]!r}, say")
        return first

    def day_after(self, period: str) -> dt.date:
        """Return the first day that is no longer in a period.

        Parameters
        ----------
        period : str
            As `period_of` names it.

        Returns
        -------
        datetime.date

        Raises
        ------
        ParameterError
            The period is none, or the last of the calendar.
        """
        first = self.first_day(period)
        days = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}[self.every]
        try:
            later = first + dt.timedelta(days=days)
        except OverflowError:
            _check.refuse("period", "end within the calendar", period, "pass an earlier one")
        return self.first_day(self.period_of(later))

    def to_json(self) -> dict[str, Any]:
        """Return the renewal as plain values.

        Returns
        -------
        dict
            For JSON, as a part of a larger document.
        """
        return RENEWAL.encode(self)

    @classmethod
    def from_json(cls, written: object) -> Renewal:
        """Return the renewal that `to_json` wrote.

        Parameters
        ----------
        written : object
            What `to_json` wrote, perhaps by way of JSON.

        Returns
        -------
        Renewal

        Raises
        ------
        ParameterError
            It is not one.
        """
        return RENEWAL.decode("renewal", written)


RENEWAL: Final[Record[Renewal]] = Record(
    "a renewal",
    Renewal,
    {
        "every": Names("a calendar period", {every: every for every in _PATTERNS}),
        "column": TEXT,
    },
)


def check_period(renewal: Renewal | None, period: str) -> None:
    """Refuse a period where the budget is one for all time, and none or a wrong one where it renews."""
    if renewal is not None:
        renewal.first_day(period)
    elif period:
        remedy = "leave period out, or open the ledger with a renewal"
        _check.refuse("period", "be left out where the budget does not renew", period, remedy)


def _first(digits: Mapping[str, str]) -> dt.date | None:
    """Return the day that a period's numbers name, None if there is no such day."""
    numbers = {name: int(text) for name, text in digits.items()}
    month = numbers.get("month", 3 * numbers.get("quarter", 1) - 2)
    try:
        if "week" in numbers:
            return dt.date.fromisocalendar(numbers["year"], numbers["week"], 1)
        return dt.date(numbers["year"], month, numbers.get("day", 1))
    except ValueError:
        return None
