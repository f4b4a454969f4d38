"""Messages of refused parameters: the value, its type or what is the case, and nothing else of the data."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NoReturn

import numpy as np
import pytest

from sfumato import _check
from sfumato.errors import NeighboringMismatch, ParameterError

CASES: dict[str, Callable[[], NoReturn]] = {
    "n must be at most 3, got 4; pass fewer": lambda: _check.refuse("n", "be at most 3", 4, "pass fewer"),
    "n must be at most 3, got '4'": lambda: _check.refuse("n", "be at most 3", "4"),
    "rows must be a list, got a value of type dict; pass one": lambda: _check.refuse_type(
        "rows", "be a list", {"secret": 1}, "pass one"
    ),
    "rows must be a list, got a value of type ndarray, of float64 with 2 axes": lambda: _check.refuse_type(
        "rows", "be a list", np.ones((1234, 2))
    ),
    "rows must be a list, got a value of type ndarray, of <U5 with 1 axis": lambda: _check.refuse_type(
        "rows", "be a list", np.array(["alice"] * 7)
    ),
    "batch must be fresh, but it was used before; draw another": lambda: _check.refuse_state(
        "batch", "be fresh", "it was used before", "draw another"
    ),
}


def test_a_message_says_the_value_or_its_type_or_the_state() -> None:
    for message, refused in CASES.items():
        with pytest.raises(ParameterError) as caught:
            refused()
        assert str(caught.value) == message


def test_the_type_of_an_array_is_not_how_many_rows_it_has() -> None:
    said = set()
    for rows in (10, 11):
        with pytest.raises(ParameterError) as caught:
            _check.instance("rows", np.ones(rows), list)
        said.add(str(caught.value))
    assert len(said) == 1


def test_an_error_may_be_of_another_class() -> None:
    with pytest.raises(NeighboringMismatch):
        _check.refuse_state("losses", "agree", "they do not", error=NeighboringMismatch)


@pytest.mark.parametrize("value", [True, "1", None, float("nan"), float("inf"), -1, 0, Fraction(-1, 2)])
def test_what_is_no_positive_number_is_refused_with_its_value(value: object) -> None:
    with pytest.raises(ParameterError) as caught:
        _check.positive("epsilon", value, "pass 1.0")
    assert str(caught.value) == f"epsilon must be positive and finite, got {value!r}; pass 1.0"


def test_numbers_come_back_as_floats_and_rationals_as_they_are() -> None:
    assert _check.positive("epsilon", Fraction(1, 2)) == 0.5
    assert type(_check.positive("epsilon", 1)) is float
    assert _check.fraction("epsilon", 0.1) == Fraction(0.1) != Fraction(1, 10)
    with pytest.raises(ParameterError, match="got 10000"):
        _check.positive("epsilon", 10**400)
