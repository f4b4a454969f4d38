"""Shares of birthdays against a calendar."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.local.surveys import Crosswise, birthday_share
from tests.cases import cases

CYCLE = [dt.date(2021, 1, 1) + dt.timedelta(day) for day in range(1461)]


@cases(
    ("first", "last"),
    [
        ((1, 1), (3, 31)),
        ((2, 29), (2, 29)),
        ((3, 1), (3, 1)),
        ((12, 25), (1, 6)),
        ((2, 28), (12, 31)),
        ((1, 1), (12, 31)),
    ],
)
def test_the_share_is_that_of_four_years(first: tuple[int, int], last: tuple[int, int]) -> None:
    days = [(day.month, day.day) for day in CYCLE]
    inside = sum(first <= day <= last if first <= last else day >= first or day <= last for day in days)
    assert birthday_share(first, last) == Fraction(inside, len(days))


def test_it_is_a_chance_of_a_design() -> None:
    assert Crosswise(innocuous=birthday_share((1, 1), (3, 31))).yes_if_true == Fraction(361, 1461)


@cases("day", [(2, 30), (4, 31), (13, 1), (0, 1), (1, 0), 3, ("a", 1), (1, True), (1, 2, 3)])
def test_days_that_are_none_are_refused(day: Any) -> None:
    with pytest.raises(ParameterError, match="first must be a month and a day"):
        birthday_share(day, (12, 31))
