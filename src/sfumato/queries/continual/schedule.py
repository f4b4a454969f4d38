"""Schedules: the periods of a counter, one after the other, fixed before the first is released."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

from sfumato import _check
from sfumato.queries.plan.sql_text import literal_sql, name_sql

__all__ = ["Moment", "Period", "Schedule"]

Moment: TypeAlias = dt.date | dt.datetime
"""When a period begins: a date, or a datetime in UTC, as the column holds them."""

Period: TypeAlias = Literal["hour", "day", "month", "quarter", "year"]

_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}
_MAX_STEPS = 100_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """So many periods from ``start``, by the column ``moment``.

    Examples
    --------
    >>> months = Schedule(moment="day", start=dt.date(2026, 11, 1), every="month", steps=3)
    >>> months.begin(2), months.end
    (datetime.date(2027, 1, 1), datetime.date(2027, 2, 1))
    >>> months.complete(dt.date(2027, 1, 20))
    2
    """

    moment: str
    start: Moment
    every: Period
    steps: int

    def __post_init__(self) -> None:
        name_sql(self.moment)
        _check.integer(
            "steps", self.steps, minimum=1, remedy="the number of periods to release, known beforehand"
        )
        if self.steps > _MAX_STEPS:
            _check.refuse("steps", f"be at most {_MAX_STEPS}", self.steps, "make periods longer")
        if self.every not in ("hour", "day", *_MONTHS):
            _check.refuse("every", "be hour, day, month, quarter or year", self.every, "write 'day'")
        if not isinstance(self.start, dt.date):
            _check.refuse("start", "be a date or a datetime", self.start, "write datetime.date(2026, 1, 1)")
        if self.every == "hour" and not isinstance(self.start, dt.datetime):
            _check.refuse("start", "be a datetime where periods are hours", self.start, "add the hour")
        if isinstance(self.start, dt.datetime) and self.start.tzinfo is not None:
            utc = self.start.astimezone(dt.UTC).replace(tzinfo=None)
            object.__setattr__(self, "start", utc)
        if self._floor() != self.start:
            _check.refuse("start", f"begin a {self.every}", str(self.start), f"write {self._floor()}")
        try:
            self.begin(self.steps)
        except (OverflowError, ValueError):
            _check.refuse("steps", "end before the year 10000", self.steps, "ask for fewer")

    @property
    def end(self) -> Moment:
        """The moment after the last period."""
        return self.begin(self.steps)

    @property
    def bucket(self) -> str:
        """The SQL of the period's beginning, of a row."""
        function = "TIMESTAMP_TRUNC" if isinstance(self.start, dt.datetime) else "DATE_TRUNC"
        return f"{function}({name_sql(self.moment)}, {self.every.upper()})"

    def begin(self, step: int) -> Moment:
        """Return when a period begins, counted from 0."""
        if self.every in _MONTHS:
            months = self.start.year * 12 + self.start.month - 1 + step * _MONTHS[self.every]
            return self.start.replace(year=months // 12, month=months % 12 + 1)
        return self.start + step * (dt.timedelta(hours=1) if self.every == "hour" else dt.timedelta(days=1))

    def within(self, first: int, last: int) -> str:
        """Return the SQL condition that a row is in a period from ``first`` to before ``last``."""
        column = name_sql(self.moment)
        low, high = (literal_sql(self.begin(step)) for step in (first, last))
        return f"({column} >= {low} AND {column} < {high})"

    def complete(self, until: Moment) -> int:
        """Return how many periods have ended by a moment."""
        given: object = until
        if not isinstance(given, dt.date):
            _check.refuse("until", "be a date or a datetime", given, "write datetime.date(2026, 1, 1)")
        if isinstance(until, dt.datetime) and until.tzinfo is not None:
            until = until.astimezone(dt.UTC).replace(tzinfo=None)
        if isinstance(self.start, dt.datetime) and not isinstance(until, dt.datetime):
            until = dt.datetime.combine(until, dt.time())
        if not isinstance(self.start, dt.datetime) and isinstance(until, dt.datetime):
            until = until.date()
        low, high = 0, self.steps
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.begin(middle) <= until else (low, middle - 1)
        return low

    def _floor(self) -> Moment:
        start = self.start
        if isinstance(start, dt.datetime):
            start = start.replace(minute=0, second=0, microsecond=0)
            if self.every != "hour":
                start = start.replace(hour=0)
        if self.every in _MONTHS:
            size = _MONTHS[self.every]
            start = start.replace(day=1, month=(start.month - 1) // size * size + 1)
        return start
