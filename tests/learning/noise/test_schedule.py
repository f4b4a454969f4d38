"""Schedules: which factor a step has, how many have it, and what is refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import ParameterError
from sfumato.learning import Schedule


@given(
    st.lists(st.sampled_from([0.25, 0.5, 1.0, 3.0]), min_size=1, max_size=6),
    st.integers(1, 5),
    st.integers(0, 40),
)
def test_factors_are_counted_as_steps_have_them(factors: list[float], every: int, steps: int) -> None:
    schedule = Schedule(factors, every)
    assert schedule.counts(steps) == Counter(schedule.at(step) for step in range(steps))
    assert [schedule.at(place * every) for place in range(len(factors))] == factors


def test_a_function_is_called_when_the_schedule_is_made_and_not_again() -> None:
    called: list[int] = []

    def falling(place: int) -> float:
        called.append(place)
        return 1.0 / (1 + place)

    schedule = Schedule.of(falling, steps=7, every=3)
    assert called == [0, 1, 2]
    assert [schedule.at(step) for step in (0, 2, 3, 6, 1000)] == [1.0, 1.0, 0.5, 1 / 3, 1 / 3]
    assert called == [0, 1, 2]
    assert Schedule.exponential(0.9, steps=3).factors == (1.0, 0.9, 0.9**2)


@pytest.mark.parametrize(
    ("factors", "every", "message"),
    [
        ((), 1, "factors must be a sequence of one number or more"),
        ("1", 1, "factors must be a sequence"),
        (1.0, 1, "factors must be a sequence"),
        ((1.0, 0.0), 1, "factors must be positive numbers, got 0.0"),
        ((float("nan"),), 1, "factors must be positive numbers, got nan"),
        ((float("inf"),), 1, "factors must be positive numbers, got inf"),
        ((1.0, "2"), 1, "factors must be positive numbers, got '2'"),
        ((1.0,), 0, "every must be"),
    ],
)
def test_what_is_no_schedule_is_refused(factors: Any, every: int, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Schedule(factors, every)


def test_a_schedule_has_a_bounded_length() -> None:
    with pytest.raises(ParameterError, match=r"steps must make at most 2\*\*20 factors"):
        Schedule.of(lambda _: 1.0, steps=1 << 21)
    assert len(Schedule.of(lambda _: 1.0, steps=1 << 21, every=1 << 10).factors) == 1 << 11
