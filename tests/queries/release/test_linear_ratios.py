"""Which expressions are a ratio of two weighted sums, and of which."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import parse_one

from sfumato.queries.release.linear_ratios import LinearForm, linear_ratio
from tests.cases import cases

VALUES = {"a": Fraction(3), "b": Fraction(-7, 2), "c": Fraction(11, 4)}


def _at(form: LinearForm) -> float:
    return form.constant + sum(weight * float(VALUES[name]) for name, weight in form.weights.items())


leaves = st.sampled_from(["a", "b", "c", "2", "0.5", "3"])
texts = st.recursive(
    leaves,
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner)
        | st.builds("(- {})".format, inner)
    ),
    max_leaves=6,
)


@settings(max_examples=60)
@given(texts)
def test_it_has_the_value_of_the_expression(text: str) -> None:
    found = linear_ratio(parse_one(text, dialect="bigquery"), VALUES)
    if found is None:
        return
    exact = "".join(
        f"Fraction('{part}')" if part.replace(".", "").isdigit() else part for part in _words(text)
    )
    try:
        value = float(eval(exact, {"Fraction": Fraction}, dict(VALUES)))
    except ZeroDivisionError:
        return
    assert abs(_at(found.numerator) - value * _at(found.denominator)) <= 1e-9 * (1 + abs(value)) * (
        1 + abs(_at(found.denominator))
    )


def _words(text: str) -> list[str]:
    for sign in "()+-*/":
        text = text.replace(sign, f" {sign} ")
    return text.split()


@cases(
    "text",
    ["a * b", "a / (b / c)", "a / b + c / a", "a / b / c", "ABS(a)", "a + d", "a / NULLIF(b, 1)", "'1'"],
)
def test_what_is_no_ratio_of_weighted_sums(text: str) -> None:
    assert linear_ratio(parse_one(text, dialect="bigquery"), VALUES) is None


@cases(
    "text, above, below",
    [
        ("1 - a / b", {"a": -1.0, "b": 1.0}, {"b": 1.0}),
        ("100 / (a / b)", {"b": 100.0}, {"a": 1.0}),
        ("a - a + b", {"b": 1.0}, {}),
        ("(a / c) / (b / c)", {"a": 1.0}, {"b": 1.0}),
        ("(a / c) / (4 / c)", {"a": 0.25}, {}),
    ],
)
def test_what_is_one(text: str, above: dict[str, float], below: dict[str, float]) -> None:
    found = linear_ratio(parse_one(text, dialect="bigquery"), VALUES)
    assert found is not None
    assert (dict(found.numerator.weights), dict(found.denominator.weights)) == (above, below)
