"""A generator that measures what it was asked for, at the price of all of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from sfumato.privacy import Neighboring
from sfumato.synthetic import FixedMarginals, Marginals, TableDomain
from tests.synthetic.generators.transcripts import DOMAIN, ROWS, Transcript, as_table, neighbors


@pytest.mark.parametrize("relation", [Neighboring.ADD_REMOVE, Neighboring.REPLACE_ONE])
def test_all_answers_cost_no_more_than_the_loss_whatever_the_neighbor(
    monkeypatch: Any, relation: Neighboring
) -> None:
    drawn = Transcript(monkeypatch)
    generator = FixedMarginals(domain=DOMAIN, rho=0.5, workload=Marginals.up_to(2), neighboring=relation)
    model = generator.release(as_table(ROWS), rng=1)
    assert [step["clique"] for step in drawn.drawn] == [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    priced = generator.privacy_loss.zcdp().rho
    assert 0.49 < priced <= 0.5
    worst = 0.0
    for rows in neighbors(relation):
        costs = drawn.costs(rows, relation)
        assert all(exact <= charged * (1 + 1e-12) for exact, charged in costs)
        worst = max(worst, sum(exact for exact, _ in costs))
    assert priced * 0.999 <= worst <= priced * (1 + 1e-12)
    measured = model.value.measured
    assert measured is not None
    for scope, table in measured.tables.items():
        step = next(each for each in drawn.drawn if each["clique"] == scope)
        np.testing.assert_array_equal(table.counts, step["answer"])
        np.testing.assert_allclose(table.variances, float(step["sigma"]) ** 2, rtol=1e-12)


def test_tables_within_others_and_of_single_columns_are_measured_once() -> None:
    workload = Marginals([("a", "b"), ("a",), ("a", "b", "c")])
    model = FixedMarginals(domain=DOMAIN, rho=0.5, workload=workload).release(as_table(ROWS), rng=1)
    assert model.tables == (("a",), ("b",), ("c",), ("a", "b", "c"))
    lone = TableDomain(a=[0, 1])
    model = FixedMarginals(domain=lone, rho=0.5).release(pa.table({"a": [0, 1]}), rng=1)
    assert model.tables == (("a",),)
    singles = FixedMarginals(domain=DOMAIN, rho=0.5, workload=Marginals.every(1))
    assert singles.privacy_loss.zcdp().rho > 0.49


def test_a_model_that_is_too_large_is_refused_before_anything_is_counted() -> None:
    wide = TableDomain({f"c{k}": list(range(10)) for k in range(8)})
    with pytest.raises(ParameterError, match="workload must make a model of at most 4194304 cells"):
        FixedMarginals(domain=wide, rho=0.5)
    wrong: Any = "pairs"
    with pytest.raises(ParameterError, match="workload"):
        FixedMarginals(domain=DOMAIN, rho=0.5, workload=wrong)
