"""A counter's promise: in how many periods a unit counts, and a row in one."""

from __future__ import annotations

import datetime as dt

import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms.factorization.strategies.participation import Participation
from sfumato.queries.continual.parameters import CounterParameters
from sfumato.queries.continual.schedule import Schedule


def parameters(max_periods: int | None) -> CounterParameters:
    schedule = Schedule(moment="at", start=dt.date(2026, 1, 1), every="day", steps=8)
    return CounterParameters(schedule, 1.0, 1e-7, max_periods, None, None)


def test_a_row_is_in_one_period_whether_that_is_said_or_not() -> None:
    for said in (None, 1):
        assert parameters(said).participation(None) == Participation(max_participations=1)
    with pytest.raises(ParameterError, match="max_periods must be None where each row is a unit, got 2"):
        parameters(2).participation(None)


def test_a_unit_is_in_as_many_periods_as_is_said() -> None:
    assert parameters(3).participation("id") == Participation(max_participations=3)
    with pytest.raises(ParameterError, match="max_periods must be given"):
        parameters(None).participation("id")
