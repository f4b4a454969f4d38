"""One unit changes one teacher, whatever it does; nothing in the data raises an error."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import ParameterError
from sfumato.learning.pate.partition import parts_of
from sfumato.learning.pate.teachers import Teachers
from tests.chance import accepts_only, frequencies

CLASSES = ["a", "b", "c"]


class Nearest:
    """Predicts the class whose mean is nearest."""

    def fit(self, X: Any, y: Any) -> None:
        self.labels = np.unique(y)
        self.means = np.stack([X[y == label].mean(axis=0) for label in self.labels])

    def predict(self, X: Any) -> Any:
        distance = ((X[:, None] - self.means[None]) ** 2).sum(axis=2)
        return self.labels[distance.argmin(axis=1)]


def data(rows: int = 300) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, rows)
    return rng.normal(size=(rows, 2)) + 3 * y[:, None], np.array(CLASSES)[y], np.arange(rows) // 2


def fit(X: Any, y: Any, units: Any, **changes: Any) -> Teachers:
    usual: dict[str, Any] = {"count": 20, "classes": CLASSES, "rng": 5}
    return Teachers.fit(lambda number: Nearest(), X, y, units=units, **(usual | changes))


@given(st.sets(st.integers(0, 149), max_size=3), st.randoms())
def test_removing_units_and_shuffling_rows_moves_no_other_unit(gone: set[int], random: Any) -> None:
    units = np.arange(150)
    before = parts_of(units, 7, rng=1)
    order = units.tolist()
    random.shuffle(order)
    left = np.array([unit for unit in order if unit not in gone])
    assert (parts_of(left, 7, rng=1) == before[left]).all()


def test_parts_are_about_equal_and_follow_the_key() -> None:
    parts = parts_of(np.arange(20_000), 10, rng=1)
    accepts_only(
        frequencies(Counter(parts.tolist())),
        dict.fromkeys(range(10), 1 / 10),
        nine=dict.fromkeys(range(9), 1 / 9),
        first_half_often=dict.fromkeys(range(5), 0.12) | dict.fromkeys(range(5, 10), 0.08),
    )
    assert (parts_of(np.arange(20_000), 10, rng=2) == parts).mean() < 0.2
    assert parts_of(np.arange(50), 10).max() < 10


def test_names_of_different_types_are_different_units() -> None:
    mixed = parts_of(np.array([1, "1", b"1"], object), 10**9, rng=1)
    assert len(set(mixed.tolist())) == 3
    assert (parts_of(np.array(["1"]), 10**9, rng=1) == mixed[1]).all()
    assert (parts_of(np.array([1]), 10**9, rng=1) == mixed[0]).all()


@pytest.mark.parametrize("units", [np.array([1.0]), np.array([[1]]), np.array([None]), np.array([True])])
def test_what_names_no_unit_is_refused(units: Any) -> None:
    with pytest.raises(ParameterError, match="units must be"):
        parts_of(units, 3, rng=1)


def test_one_unit_changes_one_vote_in_each_row() -> None:
    X, y, units = data()
    public = np.random.default_rng(4).normal(3, 3, size=(40, 2))
    before = fit(X, y, units).votes(public)
    assert (before.sum(axis=1) == 20).all()
    for unit in range(0, 150, 10):
        left = units != unit
        after = fit(X[left], y[left], units[left]).votes(public)
        assert (np.abs(after - before).sum(axis=1) <= 2).all()
        changed = np.where((units == unit)[:, None], np.nan, X)
        after = fit(changed, y, units).votes(public)
        assert (np.abs(after - before).sum(axis=1) <= 2).all()


def test_replacing_a_unit_changes_two_votes_in_each_row() -> None:
    X, y, units = data()
    public = np.random.default_rng(4).normal(3, 3, size=(40, 2))
    before = fit(X, y, units).votes(public)
    for unit in range(5, 150, 20):
        goes = units == unit
        after = fit(
            np.where(goes[:, None], -50.0, X), np.where(goes, "c", y), np.where(goes, 1000 + unit, units)
        ).votes(public)
        assert (np.abs(after - before).sum(axis=1) <= 4).all()


def test_what_is_odd_in_the_data_is_a_vote_and_no_error() -> None:
    X, y, units = data(60)
    public = X[:5]
    assert fit(X[:0], y[:0], units[:0]).votes(public).tolist() == [[20, 0, 0]] * 5
    assert fit(X, np.full(60, "zebra"), units).votes(public).tolist() == [[20, 0, 0]] * 5
    votes = fit(X, np.full(60, "c"), units).votes(public)
    assert (votes[:, 2] > 10).all()
    assert (votes.sum(axis=1) == 20).all()


class Fragile(Nearest):
    """Fails on real rows, which are larger than made-up ones."""

    def fit(self, X: Any, y: Any) -> None:
        if np.abs(X).max() > 50:
            raise RuntimeError(f"overflow at {X.max()}")
        super().fit(X, y)

    def predict(self, X: Any) -> Any:
        return np.array([["a"]] * len(X)) if X.max() > 60 else super().predict(X)


def test_a_failure_on_real_rows_is_a_vote_for_the_first_class() -> None:
    X, y, units = data()
    arguments: dict[str, Any] = {"units": units, "count": 5, "classes": CLASSES, "rng": 1}
    failing = Teachers.fit(lambda number: Fragile(), X * 100, y, **arguments)
    assert failing.votes(X[:3]).tolist() == [[5, 0, 0]] * 3
    fitted = Teachers.fit(lambda number: Fragile(), X, y, **arguments)
    assert fitted.votes(X[:3] * 0 + 100.0).tolist() == [[5, 0, 0]] * 3


class Broken(Nearest):
    def fit(self, X: Any, y: Any) -> None:
        raise RuntimeError("no such option")


class Scalar(Nearest):
    def predict(self, X: Any) -> Any:
        return "a"


def test_a_classifier_that_never_works_is_told_before_the_data_is_read() -> None:
    X, y, units = data()
    arguments: dict[str, Any] = {"units": units, "count": 5, "classes": CLASSES}
    with pytest.raises(RuntimeError, match="no such option"):
        Teachers.fit(lambda number: Broken(), X, y, **arguments)
    with pytest.raises(ParameterError, match="make must return a classifier"):
        Teachers.fit(lambda number: Scalar(), X, y, **arguments)


def test_wrong_shapes_and_classes_are_refused() -> None:
    X, y, units = data()
    with pytest.raises(ParameterError, match="X, y and units"):
        fit(X, y[1:], units)
    with pytest.raises(ParameterError, match="classes must be"):
        fit(X, y, units, classes=["a", "a"])
    with pytest.raises(ParameterError, match="count must be"):
        fit(X, y, units, count=0)
    assert "Nearest" not in repr(fit(X, y, units))


@pytest.mark.parametrize(("odd", "what"), [("x", "y"), (None, "y"), ([1], "y"), ("x", "units")])
def test_one_odd_entry_of_a_list_changes_one_vote(odd: Any, what: str) -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    lists: dict[str, Any] = {"y": [1, 0] * 20, "units": list(range(40))}
    arguments: dict[str, Any] = {"count": 8, "classes": [0, 1], "rng": 1}

    def votes() -> Any:
        return Teachers.fit(lambda number: Nearest(), X, **lists, **arguments).votes(X)

    before = votes()
    lists[what][-1] = odd
    moved = 2 if what == "y" else 4
    assert (np.abs(votes() - before).sum(axis=1) <= moved).all()


def test_a_row_without_a_unit_is_dropped() -> None:
    X, y, units = data()
    kept = units != 7
    holed = np.where(kept, units, None)
    assert (fit(X, y, holed).votes(X) == fit(X[kept], y[kept], units[kept]).votes(X)).all()
    with pytest.raises(ParameterError, match="X must be an array"):
        fit(X.tolist(), y, units)
