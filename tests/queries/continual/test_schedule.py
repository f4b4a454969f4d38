"""Schedules: periods follow one another without gap or overlap, and begin where they say."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import ParameterError
from sfumato.queries.continual.schedule import Schedule
from tests.cases import cases

EVERY = ["hour", "day", "month", "quarter", "year"]


def schedule(every: Any, start: Any, steps: int) -> Schedule:
    return Schedule(moment="at", start=start, every=every, steps=steps)


@given(st.sampled_from(EVERY), st.integers(1970, 2100), st.integers(1, 40), st.data())
def test_a_moment_is_in_one_period(every: str, year: int, steps: int, data: st.DataObject) -> None:
    start = dt.datetime(year, 4, 1)
    found = schedule(every, start if every != "year" else dt.datetime(year, 1, 1), steps)
    begins = [found.begin(step) for step in range(steps + 1)]
    assert begins == sorted(set(begins))
    assert begins[-1] == found.end
    low, high = (dt.datetime.combine(begins[end], dt.time()) for end in (0, -1))
    until = data.draw(st.datetimes(low - dt.timedelta(days=1), high + dt.timedelta(days=2)))
    assert found.complete(until) == max(0, sum(begin <= until for begin in begins) - 1)


def test_periods_are_those_of_the_calendar() -> None:
    quarters = schedule("quarter", dt.date(2026, 10, 1), 3)
    assert [quarters.begin(step) for step in range(4)] == [
        dt.date(2026, 10, 1),
        dt.date(2027, 1, 1),
        dt.date(2027, 4, 1),
        dt.date(2027, 7, 1),
    ]
    assert quarters.complete(dt.date(2027, 3, 31)) == 1
    assert quarters.complete(dt.datetime(2027, 4, 1, 0, 0, 1)) == 2
    assert quarters.complete(dt.date(2030, 1, 1)) == 3
    assert quarters.bucket == "DATE_TRUNC(`at`, QUARTER)"
    assert quarters.within(0, 1) == "(`at` >= DATE '2026-10-01' AND `at` < DATE '2027-01-01')"


def test_zones_are_read_as_instants() -> None:
    zone = dt.timezone(dt.timedelta(hours=2))
    hours = schedule("hour", dt.datetime(2026, 1, 1, 2, tzinfo=zone), 5)
    assert hours.start == dt.datetime(2026, 1, 1)
    assert hours.complete(dt.datetime(2026, 1, 1, 4, 30, tzinfo=zone)) == 2
    assert hours.complete(dt.date(2026, 1, 2)) == 5
    assert hours.bucket == "TIMESTAMP_TRUNC(`at`, HOUR)"


@cases(
    ("every", "start", "steps", "words"),
    [
        ("week", dt.date(2026, 1, 1), 3, "every"),
        ("month", dt.date(2026, 1, 2), 3, "begin a month.*2026-01-01"),
        ("quarter", dt.date(2026, 2, 1), 3, "begin a quarter"),
        ("day", dt.datetime(2026, 2, 1, 3), 3, "begin a day"),
        ("hour", dt.date(2026, 2, 1), 3, "datetime"),
        ("day", "2026-01-01", 3, "date"),
        ("day", dt.date(2026, 1, 1), 0, "steps"),
        ("day", dt.date(2026, 1, 1), 10**6, "at most"),
        ("year", dt.date(2026, 1, 1), 8000, "year 10000"),
    ],
)
def test_bad_schedules_are_refused(every: Any, start: Any, steps: int, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        schedule(every, start, steps)
