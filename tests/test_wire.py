"""The parts that every serialised document is made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import _wire
from sfumato.errors import ParameterError


@dataclass(frozen=True)
class Renamed:
    today: float
    parts: tuple[Fraction, ...]


RECORD = _wire.Record(
    "an example",
    Renamed,
    {
        "first-name": _wire.Field("today", _wire.NUMBER),
        "parts": _wire.sequence(_wire.RATIONAL),
    },
)


@given(st.floats(allow_nan=False), st.lists(st.fractions()))
def test_a_record_reads_back_what_it_wrote(number: float, parts: list[Fraction]) -> None:
    made = Renamed(number, tuple(parts))
    text = _wire.canonical(RECORD.encode(made))
    assert RECORD.decode("text", _wire.parse("text", text)) == made


@pytest.mark.parametrize(
    ("codec", "wrong"),
    [
        (_wire.INTEGER, [True, 1.0, "1", None]),
        (_wire.BOOLEAN, [1, "true", None]),
        (_wire.TEXT, [1, None, b"x"]),
        (_wire.NUMBER, ["nan", math.nan, math.inf, 10**400, True, "1", None]),
        (_wire.RATIONAL, ["1", "1/0", "1/-2", "a/b", "/", 0.5, "1/" + "9" * 3000, "²/3"]),
        (_wire.BYTES, ["0", "zz", 7, None]),
        (_wire.sequence(_wire.INTEGER), ["12", {"a": 1}, [1, "2"], None]),
        (_wire.Names("a colour", {"red": 1}), ["blue", 1, None, ["red"]]),
        (RECORD, [None, {}, {"first-name": 1.0}, {"today": 1.0, "parts": []}]),
    ],
)
def test_what_was_never_written_is_refused(codec: _wire.Codec[object], wrong: list[object]) -> None:
    for written in wrong:
        with pytest.raises(ParameterError, match="must"):
            codec.decode("given", written)


def test_a_format_is_named_and_has_a_version() -> None:
    form = _wire.Format("sfumato.example", 2)
    assert form.unwrap("text", form.wrap({"x": 1})) == (2, {"x": 1})
    assert form.unwrap("text", {"format": "sfumato.example", "version": 1}) == (1, {})
    for wrong in ({}, None, {"format": "other", "version": 1}, {"format": "sfumato.example"}):
        with pytest.raises(ParameterError):
            form.unwrap("text", wrong)
    for version in (0, 3, True, 1.0, "1"):
        with pytest.raises(ParameterError, match="from 1 to 2"):
            form.unwrap("text", {"format": "sfumato.example", "version": version})


def test_text_with_a_key_twice_or_no_number_is_refused() -> None:
    for text in ('{"a":1,"a":2}', "[NaN]", "[Infinity]", "{", "[" * 100_000, 7):
        with pytest.raises(ParameterError, match="text must"):
            _wire.parse("text", text)  # type: ignore[arg-type]


def test_two_values_never_share_a_name() -> None:
    with pytest.raises(ValueError, match="one wire name"):
        _wire.Names("a colour", {"red": 1, "crimson": 1})
