"""Estimates over a hierarchy against the dense system of all measurements, and the coverage of intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from sfumato.synthetic import Hierarchy, Invariant, TableDomain, TopDown, UnitCounts
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    PLACES = Hierarchy.from_table(
        pa.table({"state": ["a", "a", "a", "b", "b", "c"], "town": list("123456")}),
        ["state", "town"],
        root="land",
    )
DOMAIN = TableDomain(sex=["f", "m"], age=[0, 1, 2])
UNITS = UnitCounts(np.arange(40) % 5, np.arange(40) % 4, np.arange(40) % 7)


def dense(released: Any, mechanism: TopDown, weights: Any) -> tuple[float, float]:
    """The estimate and variance of a sum of unknowns by one system of all measurements and exact counts."""
    rows, values, exact, totals = [], [], [], []
    for depth, tables in released.measured.items():
        inside = PLACES.ancestors(depth)[None] == np.arange(PLACES.size(depth))[:, None]
        for table in tables:
            query = next(
                q
                for q in [*mechanism._queries, *mechanism._constraints.queries]
                if q.columns == table.columns
            )
            groups = query.group_of[None] == np.arange(query.groups)[:, None]
            design = np.kron(inside, groups).astype(float)
            if table.variance:
                rows.append(design / table.variance**0.5)
                values.append(table.counts.ravel() / table.variance**0.5)
            else:
                exact.append(design)
                totals.append(table.counts.ravel())
    x, y = np.concatenate(rows), np.concatenate(values)
    c = np.concatenate(exact) if exact else np.zeros((0, x.shape[1]))
    system = np.block([[x.T @ x, c.T], [c, np.zeros((len(c), len(c)))]])
    inverse = np.linalg.pinv(system, hermitian=True)
    solution = inverse @ np.concatenate([x.T @ y, *totals])
    size = x.shape[1]
    return float(weights @ solution[:size]), float(weights @ inverse[:size, :size] @ weights)


TWO = (Invariant("land", ("sex",)), Invariant("state"), Invariant("land", ("age",)))


@cases("invariants", [(), (Invariant("state"),), (Invariant("land", ("sex",)),), TWO])
@cases(
    ("places", "leaves"),
    [
        (None, [1, 1, 1, 1, 1, 1]),
        ({"town": ["2"]}, [0, 1, 0, 0, 0, 0]),
        ({"state": ["b"], "town": ["1", "6"]}, [1, 0, 0, 1, 1, 1]),
    ],
)
def test_estimates_are_those_of_the_dense_system(invariants: Any, places: Any, leaves: list[int]) -> None:
    mechanism = TopDown(
        hierarchy=PLACES, domain=DOMAIN, queries=[(), ("sex",), ("age",), ("age", "sex")], rho=0.3,
        invariants=invariants, levels={"land": 1, "state": 3, "town": 2},
        shares={"land": [1, 1, 0, 1], "state": [1, 2, 3, 4], "town": [1, 0, 1, 2]},
    )  # fmt: skip
    released = mechanism.release(UNITS, rng=6)
    for columns, cell in ((("age", "sex"), (2, 1)), (("sex",), (0,)), ((), ())):
        found = released.estimate(*columns, places=places)
        axes = [slice(None)] * 2
        for name, code in zip(columns, cell, strict=True):
            axes[DOMAIN.index(name)] = code  # type: ignore[call-overload]
        cells = np.zeros((2, 3))
        cells[tuple(axes)] = 1
        value, variance = dense(released, mechanism, np.kron(leaves, cells.ravel()))
        assert float(found.counts[cell]) == pytest.approx(value, abs=1e-6)
        assert found.stddev**2 == pytest.approx(variance, abs=1e-6)
        assert float(found.counts.sum()) == pytest.approx(found.total, abs=1e-6)


def test_exact_counts_have_exact_intervals() -> None:
    mechanism = TopDown(
        hierarchy=PLACES, domain=DOMAIN, queries=[("age", "sex")], rho=0.3, invariants=[Invariant("state")]
    )
    found = mechanism.release(UNITS, rng=6).estimate(places={"state": ["a"]})
    exact = int(UNITS.counts[np.isin(UNITS.units, [0, 1, 2])].sum())
    assert (float(found.counts), found.stddev) == (exact, 0.0)
    assert found.interval(0.95).lower == exact == found.interval(0.95).upper


def test_intervals_hold_what_they_say_for_sums_of_places_and_for_empty_cells() -> None:
    """Of 120 runs, six cells of a sum across states, a third of them empty; narrower intervals fail."""
    mechanism = TopDown(hierarchy=PLACES, domain=DOMAIN, queries=[(), ("age", "sex")], rho=0.02)
    places = {"state": ["c"], "town": ["2", "4"]}
    chosen = np.isin(UNITS.units, [1, 3, 5])
    exact = np.bincount(UNITS.cells[chosen], weights=UNITS.counts[chosen], minlength=6).reshape(2, 3)
    assert (exact == 0).sum() == 2
    rng, held, empty, narrow, runs = np.random.default_rng(9), 0, 0, 0, 120
    for _ in range(runs):
        found = mechanism.release(UNITS, rng=rng).estimate("sex", "age", places=places)
        lower, upper, _ = found.interval(0.95)
        inside = (lower <= exact) & (exact <= upper)
        held, empty = held + int(inside.sum()), empty + int(inside[exact == 0].sum())
        narrow += int((np.abs(found.counts - exact) <= 0.8 * 1.96 * found.stddev).sum())
    assert 0.925 <= held / (6 * runs) <= 0.975
    assert 0.91 <= empty / (2 * runs) <= 0.99
    assert narrow / (6 * runs) < 0.92


def test_what_was_not_measured_is_refused() -> None:
    mechanism = TopDown(
        hierarchy=PLACES, domain=DOMAIN, queries=[("sex",), ("age",)], rho=1,
        shares={"land": [1, 1], "state": [1, 1], "town": [1, 0]},
    )  # fmt: skip
    released = mechanism.release(UNITS, rng=1)
    assert released.estimate("age", places={"state": ["a"]}).stddev > 0
    for columns, places, message in (
        (("sex", "age"), None, "columns must be measured together on the places or below them"),
        (("age",), {"town": ["1"]}, "columns must be measured together on the places or below them"),
        (("sex",), {"state": ["a"], "town": ["1"]}, "places must not lie in each other"),
        (("sex",), {"town": ["1", "1"]}, "places must be there once"),
        (("sex",), {"town": ["9"]}, "labels must be places"),
        (("sex",), {}, "places must be a mapping"),
    ):
        with pytest.raises(ParameterError, match=message):
            released.estimate(*columns, places=places)
    assert mechanism.release(UNITS, rng=1, intervals=False).measured is None
