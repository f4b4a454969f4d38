"""``--param``: from words to typed values."""

from __future__ import annotations

import datetime as dt

import pytest

from sfumato.cli.sql import params_of
from sfumato.errors import ParameterError
from tests.cases import cases

READ = [
    ("a=18", 18), ("a=-3", -3), ("a=0", 0), ("a=0.5", 0.5), ("a=1e-8", 1e-8), ("a=TRUE", True),
    ("a=CA", "CA"),
    ("a=02139", "02139"), ("a=", ""), ("a=b=c", "b=c"), ('a=["x", "y"]', ["x", "y"]), ("a=[1, 2]", [1, 2]),
    ("a:STRING=18", "18"), ("a:string=[1]", "[1]"), ("a:INT64=007", 7), ("a:FLOAT64=2", 2.0),
    ("a:DATE=2020-01-31", dt.date(2020, 1, 31)), ("a:BOOL=false", False),
    ("a:TIMESTAMP=2020-01-31 12:00:00", dt.datetime(2020, 1, 31, 12)), ("a=2020-01-31", "2020-01-31"),
]  # fmt: skip


@cases(("word", "value"), READ)
def test_a_value_is_what_it_looks_like_or_what_is_said(word: str, value: object) -> None:
    (found,) = params_of([word]).values()
    assert found == value
    assert type(found) is type(value)


REFUSED = [
    (["a"], "param must be NAME=VALUE or NAME:TYPE=VALUE, got 'a'"),
    (["=1"], "param must be NAME=VALUE"),
    (["a=1", "a=2"], "param must name each parameter once"),
    (["a:INT64=x"], "param must hold a value of INT64"),
    (["a:BOOL=2"], "param must hold a value of BOOL"),
    (["a:DATE=31.1.2020"], "param must hold a value of DATE"),
    (["a:JSON=1"], "param must be of a type BOOL, INT64"),
    (["a=[1"], "param must hold a list in JSON"),
]


@cases(("words", "phrase"), REFUSED)
def test_other_words_are_refused(words: list[str], phrase: str) -> None:
    with pytest.raises(ParameterError, match=phrase):
        params_of(words)
