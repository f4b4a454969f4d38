"""AIM: what it learns, what it leaves alone, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from sfumato.synthetic import AIM, IndependentMarginals, Marginals, Ordered, SyntheticModel, TableDomain

DOMAIN = TableDomain(a=[0, 1], b=[0, 1], c=[0, 1], d=Ordered.integers(0, 9), e=Ordered.integers(0, 9))


def people(rows: int = 20_000) -> pa.Table:
    """The exclusive or of a and b is c, which no pair shows; and e is near d."""
    rng = np.random.default_rng(2)
    a, b, d = rng.integers(0, 2, rows), rng.integers(0, 2, rows), rng.binomial(9, 0.3, rows)
    e = np.minimum(9, d + rng.integers(0, 2, rows))
    return pa.table({"a": a, "b": b, "c": a ^ b, "d": d, "e": e})


def error(model: SyntheticModel, table: pa.Table, *columns: str) -> float:
    """Total variation distance of a marginal."""
    codes = DOMAIN.encode(table)
    counts = np.zeros([DOMAIN[name].size for name in columns])
    np.add.at(counts, tuple(codes[:, DOMAIN.index(name)] for name in columns), 1)
    return float(np.abs(model.marginal(*columns) / model.total - counts / len(codes)).sum() / 2)


def test_pairs_are_learnt_and_a_triple_only_where_the_workload_has_it() -> None:
    table = people()
    made: dict[int, Any] = {
        width: AIM.calibrated(DOMAIN, Marginals.every(width), epsilon=1.0, delta=1e-9).release(table, rng=4)
        for width in (1, 2, 3)
    }
    assert error(made[1], table, "d", "e") > 0.4
    assert error(made[2], table, "d", "e") < 0.02 > error(made[3], table, "d", "e")
    assert error(made[2], table, "a", "b", "c") > 0.45
    assert error(made[3], table, "a", "b", "c") < 0.02
    assert ("a", "b", "c") in made[3].tables
    assert all(len(columns) == 1 for columns in made[1].tables)


def test_the_model_is_not_larger_than_it_may_be() -> None:
    table = people()
    small = AIM.calibrated(DOMAIN, epsilon=8.0, delta=1e-9, max_cells=60).release(table, rng=1)
    large = AIM.calibrated(DOMAIN, epsilon=8.0, delta=1e-9, rounds=12).release(table, rng=1)
    assert small.value.model.tree.cells <= 60
    assert large.value.model.tree.cells > 100
    assert sum(len(columns) > 1 for columns in large.tables) > 3
    none = AIM.calibrated(DOMAIN, epsilon=8.0, delta=1e-9, max_cells=1).release(table, rng=1)
    assert none.value.model.tree.cells <= 60


def test_with_a_small_budget_it_is_no_worse_than_independent_columns() -> None:
    """Mean error over all pairs; a wrong branch, with little of the budget for columns, is far worse."""
    table, names = people(1500), list(DOMAIN)
    pairs = [(x, y) for i, x in enumerate(names) for y in names[i + 1 :]]
    found = {}
    for generator in (AIM, IndependentMarginals):
        made = generator.calibrated(DOMAIN, epsilon=0.1, delta=1e-9)
        models = [made.release(table, rng=seed) for seed in range(5)]
        found[generator] = np.mean([error(model, table, *pair) for model in models for pair in pairs])
    assert found[AIM] <= 1.05 * found[IndependentMarginals]


def test_a_workload_that_does_not_fit_is_refused_before_anything_is_read() -> None:
    wide = TableDomain(a=Ordered.integers(0, 5000), b=Ordered.integers(0, 5000))
    with pytest.raises(ParameterError, match="workload must be of tables of at most 16777216 cells, but the"):
        AIM.calibrated(wide, epsilon=1.0, delta=1e-6)
    for given, match in (
        ({"workload": 2}, "workload must be a Marginals"),
        ({"max_cells": 0}, "max_cells must"),
        ({"rounds": 0}, "rounds must"),
        ({"workload": Marginals([("a", "x")])}, "column must be one of"),
    ):
        with pytest.raises(ParameterError, match=match):
            AIM(domain=DOMAIN, rho=1, **given)
    many = TableDomain({f"c{i}": [0, 1] for i in range(17)})
    with pytest.raises(ParameterError, match="workload must have at most 16 columns in each table, but one"):
        AIM(domain=many, rho=1, workload=Marginals.every(17))


def test_weights_of_any_size_are_regarded_by_what_they_are_to_each_other() -> None:
    """Their sum was infinite, and the charge was lost with a ValueError."""
    domain = TableDomain(a=[0, 1], b=[0, 1], c=[0, 1])
    table = pa.table({"a": [0, 1], "b": [0, 1], "c": [1, 0]})
    tables = [("a", "b", "c"), ("a", "b"), ("c",)]
    documents = {
        AIM(domain=domain, rho=1, workload=Marginals(tables, weights)).release(table, rng=1).to_json()
        for weights in ([1.0, 0.25, 1.0], [1.6e308, 0.4e308, 1e-300], [4e-300, 1e-300, 1e308])
    }
    assert len(documents) == 1
