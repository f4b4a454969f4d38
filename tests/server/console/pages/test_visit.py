"""What a visit's parameters and fields are read as."""

from __future__ import annotations

import math

import pytest

from sfumato.errors import ParameterError
from sfumato.server.console.access.identity import PUBLIC
from sfumato.server.console.pages.visit import Visit, read_number
from tests.cases import cases


@cases(
    ("text", "number"),
    [
        ("1", 1),
        ("999", 999),
        ("0", None),
        ("01", None),
        ("", None),
        ("-1", None),
        ("1" * 19, None),
        ("\u0661", None),
    ],
)
def test_numbers_in_paths_have_one_spelling(text: str, number: int | None) -> None:
    assert Visit(identity=PUBLIC, path={"number": text}).number() == number


@cases(("text", "page"), [("", 1), ("2", 2), ("0", 1), ("x", 1), ("1" * 10, 1), ("\u0662", 1), ("-3", 1)])
def test_a_page_is_at_least_the_first(text: str, page: int) -> None:
    assert Visit(identity=PUBLIC, query={"page": text}).page() == page


def test_fields_are_trimmed_and_checked() -> None:
    visit = Visit(identity=PUBLIC, form={"a": "  x ", "b": "1e-9", "c": "", "d": "1e400", "e": "-1"})
    assert visit.text("a") == visit.line("a", "") == "x"
    assert visit.text("none") == ""
    assert visit.amount("b", "") == 1e-9
    assert visit.amount("c", "") is None
    for name in ("a", "d", "e"):
        with pytest.raises(ParameterError, match=f"{name} must be a number of at least 0"):
            visit.amount(name, "write one")
    with pytest.raises(ParameterError, match="c must be filled in"):
        visit.line("c", "say it")


def test_a_number_without_a_minimum_may_be_negative() -> None:
    assert read_number("lower", "-2.5", "", minimum=-math.inf) == -2.5
    assert read_number("lower", "", "", minimum=-math.inf) is None
    for text in ("-", "--1", "-inf", "nan", "1_0x"):
        with pytest.raises(ParameterError, match="lower must be a number, got"):
            read_number("lower", text, "write one", minimum=-math.inf)
