"""What is no array of numbers is refused in one form, and none of it is shown."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ParameterError
from sfumato.games.arrays import as_array, as_numbers


def test_numbers_become_floats_of_their_own() -> None:
    given = np.array([1.0, 2.0])
    found = as_numbers("x", given, "")
    found[0] = 9.0
    assert given.tolist() == [1.0, 2.0]
    exact: list[Any] = [Fraction(1, 4), Decimal("0.5")]
    assert as_numbers("x", exact, "").tolist() == [0.25, 0.5]
    assert as_numbers("x", [[True, False]], "").tolist() == [[1.0, 0.0]]
    assert as_numbers("x", [], "").shape == (0,)
    assert as_array("x", [[1, 2], [3, 4]], "").dtype.kind == "i"


def test_what_is_none_is_refused_without_being_shown() -> None:
    for given in (
        ["secret"],
        [1j],
        [b"secret"],
        np.array(["2020-01-01"], "datetime64[D]"),
        [object()],
        "secret",
    ):
        with pytest.raises(ParameterError, match="x must be real numbers, got a value of type ") as caught:
            as_numbers("x", given, "pass numbers")
        assert "secret" not in str(caught.value)
        assert str(caught.value).endswith("; pass numbers")
    for convert in (as_array, as_numbers):
        with pytest.raises(ParameterError, match="x must be an array, but its rows differ in length or form"):
            convert("x", [[1.0, 2.0], [3.0]], "pass rows")


@pytest.mark.parametrize("text", ["1.0", b"1.0"])
def test_numbers_in_strings_are_refused_among_objects_too(text: object) -> None:
    with pytest.raises(ParameterError, match="x must be real numbers"):
        as_numbers("x", np.array([text, 2.0], object), "pass numbers")
