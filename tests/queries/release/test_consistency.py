"""Hierarchies: levels add up, the estimate is that of least squares, errors shrink as they are said to."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import ParameterError
from sfumato.queries.release.consistency import consistent
from sfumato.queries.release.table import TableRelease
from tests.chance import accepts_only
from tests.run_time import run_time

STATES, COUNTIES = ["CA", "NY"], [1, 2, 3]
if run_time(__name__):
    PEOPLE = pa.table(
        {
            "person": range(600),
            "state": STATES * 300,
            "county": np.repeat(COUNTIES, 200),
            "pay": np.linspace(0, 10, 600),
        }
    )
PAIRS: Any = {("state", "county"): [(s, c) for s in STATES for c in COUNTIES]}


@functools.cache
def levels(many: int = 2) -> list[TableRelease]:
    """The total, so many states, and three counties in each, at an epsilon of 0.5, 1 and 2."""
    people, names, pairs = (PEOPLE, STATES, PAIRS) if many == 2 else _country(many)
    epsilons = (0.5, 1.0, 2.0)
    with sf.connect(people, privacy_unit="person", epsilon=50, rng=1) as session:
        ask = {"delta": 0, "max_groups_contributed": 1}
        table, n = session.table(), {"n": sf.count(), "pay": sf.sum("pay", bounds=(0, 10))}
        total = table.agg(**n).release(epsilon=epsilons[0], delta=0)
        states = table.group_by("state", public_groups={"state": names}).agg(**n)
        counties = table.group_by("state", "county", public_groups=pairs).agg(**n)
        return [
            total,
            states.release(epsilon=epsilons[1], **ask),
            counties.release(epsilon=epsilons[2], **ask),
        ]


@pytest.mark.parametrize("column", ["n", "pay"])
def test_it_is_the_weighted_least_squares_estimate(column: str) -> None:
    found = levels()
    made = consistent(found, column)
    # every level as sums of the six counties, weighed by its noise
    rows, seen, weights = [], [], []
    for release in found:
        table = release.to_arrow()
        measure = release.record.measures[next(c.total for c in release.record.columns if c.name == column)]
        stddev = float(measure.noise.stddev) * 2.0**measure.exponent
        for group in table.to_pylist():
            pairs = [(s, c) for s in STATES for c in COUNTIES]
            rows.append([group.get("state", s) == s and group.get("county", c) == c for s, c in pairs])
            seen.append(group[column])
            weights.append(1 / stddev)
    design = np.asarray(rows, float) * np.asarray(weights)[:, None]
    leaves = np.linalg.lstsq(design, np.asarray(seen) * weights, rcond=None)[0]
    covariance = np.linalg.inv(design.T @ design)
    assert np.allclose(made[2][column].to_numpy(), leaves)
    assert np.allclose(made[2][f"{column}_stddev"].to_numpy() ** 2, np.diag(covariance))
    assert np.allclose(made[0][column].to_numpy(), leaves.sum())
    assert np.allclose(made[0][f"{column}_stddev"].to_numpy() ** 2, covariance.sum())
    assert np.allclose(made[1][column].to_numpy(), leaves.reshape(2, 3).sum(axis=1))
    blocks = [covariance[i : i + 3, i : i + 3].sum() for i in (0, 3)]
    assert np.allclose(made[1][f"{column}_stddev"].to_numpy() ** 2, blocks)


def _country(many: int) -> tuple[pa.Table, list[str], Any]:
    """Many states, with two people in each of three counties."""
    names = [f"{place:03}" for place in range(many)]
    columns = {
        "person": range(6 * many),
        "state": np.repeat(names, 6),
        "county": [1, 1, 2, 2, 3, 3] * many,
        "pay": np.ones(6 * many),
    }
    return pa.table(columns), names, {("state", "county"): [(s, c) for s in names for c in COUNTIES]}


def test_errors_are_as_large_as_they_are_said_to_be() -> None:
    found = levels(120)
    made, before = (table["n"].to_numpy() for table in (consistent(found, "n")[2], found[2].to_arrow()))
    errors, said = made - 2.0, consistent(found, "n")[2]["n_stddev"].to_numpy()

    # of 360 errors, hardly correlated over 120 states, the standard deviation is known to some 7 per cent
    def check(stddev: float) -> None:
        assert np.std(errors) == pytest.approx(stddev, rel=0.3)
        assert abs(np.mean(errors)) < stddev / 4

    told = float(np.mean(said))
    accepts_only(check, told, of_half_the_noise=told / 2, ten_times=10 * told)
    assert np.std(errors) < np.std(before)


def test_bad_levels_are_refused() -> None:
    total, states, counties = levels()
    wrong: list[tuple[Any, str, str]] = [
        ([total], "n", "two releases"),
        (total, "n", "two releases"),
        ([total, 3], "n", "releases"),
        ([states, total], "n", "refine .*groups by nothing come after groups by state"),
        ([states, states], "n", "refine"),
        ([total, states], "m", "COUNT or SUM"),
    ]
    with sf.connect(PEOPLE, privacy_unit="person", epsilon=50, delta=1e-3, rng=1) as session:
        rows = session.table()
        few = rows.group_by("state", public_groups={"state": ["CA"]}).agg(n=sf.count())
        ask = {"epsilon": 1, "max_groups_contributed": 1}
        wrong.append(([few.release(delta=0, **ask), counties], "n", "the same groups"))
        unknown = rows.group_by("state").agg(n=sf.count()).release(delta=1e-6, **ask)
        wrong.append(([total, unknown], "n", "public groups"))
        mean = rows.agg(n=sf.mean("pay", bounds=(0, 10))).release(epsilon=1, delta=0)
        wrong.append(([mean, states], "n", "ask each level for COUNT or SUM"))
    for given, column, words in wrong:
        with pytest.raises(ParameterError, match=words):
            consistent(given, column)
