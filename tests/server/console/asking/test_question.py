"""Questions are stored as they are asked, and forms are written out as SQL that a session reads."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import ParameterError
from sfumato.server.console.asking.question import Question, QuestionForm
from tests.cases import cases


def test_every_form_is_a_question_that_is_priced() -> None:
    people = pa.table({"person": [1, 2], "a `b": ["x", "y"], "pay": [1.0, 2.0]})
    with sf.connect(people, privacy_unit="person", epsilon=1, delta=1e-6) as session:
        asker = session.as_analyst("", defaults={"epsilon": 0.5, "delta": 1e-9})
        for aggregate in (
            "SUM",
            "AVG",
            "MEDIAN",
            "MIN",
            "MAX",
            "STDDEV",
            "VARIANCE",
            "COUNT(DISTINCT)",
            "COUNT",
        ):
            counts = aggregate.startswith("COUNT")
            form = QuestionForm(
                table="data",
                aggregate=aggregate,
                column="" if aggregate == "COUNT" else "pay",
                lower=None if counts else -1.5,
                upper=None if counts else 1e6,
                group_by="a `b",
                groups=1,
                rows=2,
            )
            (priced,) = asker.priced(form.sql)
            assert priced.query.output[0] == "a `b"
            stated = priced.query.aggregates[0]
            assert counts or (stated.row_bounds or stated.group_bounds) == (-1.5, 1e6)


@cases(
    "fields",
    [
        {"aggregate": "DROP TABLE"},
        {"aggregate": "COUNT", "column": "x"},
        {"aggregate": "SUM"},
        {"aggregate": "SUM", "column": "x", "lower": 1.0},
        {"aggregate": "SUM", "column": "x", "lower": float("nan"), "upper": 1.0},
        {"aggregate": "COUNT(DISTINCT)", "column": "x", "lower": 0.0, "upper": 1.0},
        {"aggregate": "COUNT", "groups": 0},
        {"aggregate": "COUNT", "delta": 1.0},
    ],
)
def test_a_form_that_says_nothing_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="must"):
        QuestionForm(table="data", **fields)


def test_a_question_is_read_back_as_it_was() -> None:
    values = {"n": 3, "x": 0.1, "yes": True, "names": ["a", "b"]}
    question = Question(sql="SELECT 1", params=values, epsilon=5e-324, period="2026-01", purpose="why")
    again = Question.from_json(question.to_json())
    assert again == question
    assert again.to_json() == question.to_json()


@cases(
    "fields",
    [
        {"sql": " "},
        {"sql": 7},
        {"sql": "x" * 100_001},
        {"sql": "x", "epsilon": 0.0},
        {"sql": "x", "epsilon": float("inf")},
        {"sql": "x", "params": {"a": None}},
        {"sql": "x", "params": {1: 2}},
        {"sql": "x", "params": [1]},
        {"sql": "x", "params": {"a": float("nan")}},
        {"sql": "x", "params": {"a": [1.0, float("inf")]}},
        {"sql": "x", "params": {"a": 2**63}},
        {"sql": "x", "purpose": "two\nlines"},
    ],
)
def test_what_is_no_question_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="must"):
        Question(**fields)
