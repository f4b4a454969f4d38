"""Contingency tables: what one record moves, the measures of association, and how often intervals hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import NeighboringMismatch, ParameterError
from sfumato.mechanisms import ContingencyTable, Gaussian, Laplace, independence_test
from sfumato.privacy import Neighboring
from tests.cases import cases
from tests.chance import accepts_only, at_least

TWO = ContingencyTable(rows=(0, 1), columns=(0, 1))
RECORD = st.tuples(st.integers(-1, 3), st.integers(-1, 3))


@settings(max_examples=100)
@given(RECORD, RECORD)
def test_one_record_moves_no_more_than_declared(one: Any, other: Any) -> None:
    query = ContingencyTable(rows=(0, 1, 2), columns=(1, 2))
    shared = np.array([[0, 1], [2, 2]])
    base = query.steps(shared)
    added, replaced = (query.steps(np.vstack([shared, [row]])) for row in (one, other))
    assert np.abs(added - base).sum() == (one[0] in query.rows and one[1] in query.columns)
    for move, relation in ((added - base, "ADD_REMOVE"), (added - replaced, "REPLACE_ONE")):
        bound = query.shift(Neighboring[relation])
        assert np.count_nonzero(move) <= bound.l0
        assert np.abs(move).sum() <= bound.l1
        assert (move**2).sum() <= bound.l2_squared


def test_values_of_any_type_are_counted_and_others_are_not() -> None:
    data = np.array([["a", 1], ["b", 2.0], ["c", 1], ["a", None], ["a", 1], [math.nan, 1]], dtype=object)
    assert ContingencyTable(rows=("a", "b"), columns=(1, 2))(data).tolist() == [[2, 0], [0, 1]]
    texts = np.array([["a", "x"], ["b", "y"], ["b", "?"]])
    assert ContingencyTable(rows=("a", "b"), columns=("x", "y"))(texts).tolist() == [[1, 0], [0, 1]]


def test_without_noise_they_are_the_textbook_measures() -> None:
    data = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], [600, 1400, 300, 2700], axis=0)
    release = Laplace.for_query(TWO, epsilon=1e9).release(data)
    odds, risk, difference = (
        measure(release, draws=9999, rng=1)
        for measure in (TWO.odds_ratio, TWO.relative_risk, TWO.risk_difference)
    )
    assert odds.value == pytest.approx(600 * 2700 / (1400 * 300), rel=3e-3)
    assert risk.value == pytest.approx(3.0, rel=3e-3)
    assert difference.value == pytest.approx(0.2, abs=1e-3)
    woolf = math.sqrt(1 / 600 + 1 / 1400 + 1 / 300 + 1 / 2700)
    assert odds.standard_error == pytest.approx(woolf, rel=2e-3)
    assert math.log(odds.upper / odds.lower) == pytest.approx(2 * 1.96 * woolf, rel=0.04)
    assert risk.standard_error == pytest.approx(math.sqrt(1400 / 600 / 2000 + 2700 / 300 / 3000), rel=2e-3)
    assert difference.standard_error == pytest.approx(math.sqrt(0.21 / 2000 + 0.09 / 3000), rel=2e-3)
    assert TWO.independence(release, draws=99, rng=2) == independence_test(release, draws=99, rng=2)


@cases("measure, truth", [("odds_ratio", 2.25), ("relative_risk", 1.5), ("risk_difference", 0.2)])
@cases("neighboring", [Neighboring.ADD_REMOVE, Neighboring.REPLACE_ONE])
def test_intervals_hold_as_often_as_promised(measure: str, truth: float, neighboring: Any) -> None:
    rng, runs, n, held = np.random.default_rng(6), 60, 150, 0
    noisy = Laplace.for_query(TWO, epsilon=0.5, neighboring=neighboring)
    public = n if neighboring is Neighboring.REPLACE_ONE else None
    estimate: Callable[..., Any] = getattr(TWO, measure)
    errors, found = [], []
    for _ in range(runs):
        cells = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], rng.multinomial(n, [0.3, 0.2, 0.2, 0.3]), axis=0)
        one = estimate(noisy.release(cells, rng), 0.7, n=public, draws=39, rng=rng)
        held += one.lower <= truth <= one.upper
        errors.append(one.standard_error)
        found.append(one.value if measure == "risk_difference" else math.log(one.value))
    accepts_only(at_least(held, runs), 0.7, too_narrow=0.99)
    assert 0.7 < np.median(errors) / np.std(found) < 1.4


def test_odd_tables_have_finite_intervals() -> None:
    for noisy in (Laplace.for_query(TWO, epsilon=0.1), Gaussian.for_query(TWO, epsilon=1.0, delta=1e-6)):
        for data in (np.zeros((0, 2)), np.zeros((50, 2))):
            one = TWO.odds_ratio(noisy.release(data, rng=1), draws=19, rng=1)
            assert 0 < one.lower <= one.value <= one.upper < math.inf


@cases(
    "make, error, message",
    [
        (lambda: ContingencyTable(rows=(1,), columns=(1, 2)), ParameterError, "rows must hold"),
        (lambda: ContingencyTable(rows=(1, 2), columns="ab"), ParameterError, "columns must hold"),
        (lambda: TWO.steps(np.zeros((3, 3))), ParameterError, r"data must have the shape \(n, 2\)"),
        (
            lambda: TWO.odds_ratio(Laplace.for_query(TWO, epsilon=1.0).release(np.zeros((5, 2))), n=5),
            NeighboringMismatch,
            "release must be under replace-one",
        ),
        (
            lambda: ContingencyTable(rows=(1, 2, 3), columns=(1, 2)).odds_ratio(
                Laplace.calibrated(sensitivity=1, epsilon=1.0).release(np.zeros((3, 2), int))
            ),
            ParameterError,
            "rows must be two",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make()
