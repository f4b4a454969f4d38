"""A paid measure: its value by hand, its sensitivity over all pairs of neighbors, its release."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.mechanisms.base.grid import LIMIT
from sfumato.privacy import Neighboring
from sfumato.synthetic import Marginals, TableDomain, WorkloadError, curator_quality_report
from tests.cases import cases
from tests.synthetic.quality.test_marginal_distances import SMALL, drawn

PAIR = TableDomain(a=[0, 1], b=[0, 1, 2])
ROWS = [*product(range(2), range(3)), (0, None)]
SYNTHETIC = np.array([[0, 0], [0, 0], [0, 1], [1, 2]])
WORKLOAD = Marginals([("a",), ("b",), ("a", "b"), ()])


def table(rows: Any) -> pa.Table:
    return pa.table({name: pa.array([row[i] for row in rows], pa.int64()) for i, name in enumerate("ab")})


def neighbors(relation: Neighboring) -> Any:
    """All pairs of tables of up to three rows; a row that is not counted stands for the neutral one."""
    pairs: Any = combinations_with_replacement(ROWS, 2)
    for rest in [(), *((row,) for row in ROWS), *pairs]:
        for row in ROWS:
            others: Any = {
                Neighboring.ADD_REMOVE: [()],
                Neighboring.ZERO_OUT: [((0, None),)],
                Neighboring.REPLACE_ONE: [(other,) for other in ROWS],
            }[relation]
            yield from (((row, *rest), (*other, *rest)) for other in others)


def queries(rows: int) -> tuple[WorkloadError, WorkloadError]:
    given: Any = {"domain": PAIR, "synthetic": SYNTHETIC, "workload": WORKLOAD, "rows": rows}
    return WorkloadError(**given), WorkloadError(**given, by_table=True)


@functools.cache
def answers(rows: int, side: Any) -> tuple[Any, Any]:
    mean, each = queries(rows)
    return mean.steps(table(side)), np.asarray(each.steps(table(side)))


@cases("relation", list(Neighboring))
@cases("rows", [4, 3, 6])
def test_no_neighbor_moves_the_answer_by_more_than_is_charged_and_one_does(
    relation: Neighboring, rows: int
) -> None:
    mean, each = queries(rows)
    found = []
    for pair in neighbors(relation):
        one, other = (answers(rows, tuple(sorted(side, key=str))) for side in pair)
        moved = np.abs(one[1] - other[1])
        found.append((abs(one[0] - other[0]), moved.sum(), (moved**2).sum(), moved.max(), (moved > 0).sum()))
    worst = np.max(found, axis=0).tolist()
    shift, alone = each.shift(relation), mean.shift(relation)
    assert worst[0] <= alone.l1 == alone.linf
    assert alone.l0 == 1
    assert alone.l2_squared == alone.l1**2
    assert worst[1] <= shift.l1
    assert worst[2] <= shift.l2_squared
    assert worst[3] <= shift.linf
    assert worst[4] <= shift.l0 == 4
    assert worst[:4] == [alone.l1, shift.l1, shift.l2_squared, shift.linf]


@cases("rows", [None, 90, 60, 45])
def test_the_answer_is_the_total_variation_distance(rows: int | None) -> None:
    """Of as many real rows as are stated; of others it differs by what is stated."""
    real, made = drawn(SMALL, 90, 1), drawn(SMALL, 60, 2)
    workload = Marginals.every(2)
    query = WorkloadError(domain=SMALL, synthetic=made, workload=workload, rows=rows, by_table=True)
    number, found = rows or 60, query(pa.table({name: real[:, i] for i, name in enumerate("abc")}))
    for clique, value in zip(workload.cliques(SMALL), found, strict=True):
        cells = list(product(*(range(SMALL.sizes[place]) for place in clique)))
        counts = [
            [sum(row == cell for row in map(tuple, rows_[:, clique].tolist())) for cell in cells]
            for rows_ in (real, made)
        ]
        exact = np.abs(np.array(counts[0]) - np.array(counts[1]) * number / 60).sum() / (2 * number)
        assert value == pytest.approx(exact, abs=1e-12)
    truth = [
        each.synthetic for each in curator_quality_report(real, made, SMALL, workload=workload).marginals
    ]
    assert np.all(np.abs(found - truth) <= abs(90 - number) / (2 * number) + 1e-12)
    if number == 90:
        assert found == pytest.approx(truth, abs=1e-12)
    mean = replace(query, by_table=False)
    assert mean(pa.table({name: real[:, i] for i, name in enumerate("abc")})) == pytest.approx(np.mean(found))


def test_it_is_released_with_the_loss_that_is_stated() -> None:
    real, made = drawn(SMALL, 5000, 1), drawn(SMALL, 5000, 2)
    frame = pa.table({name: real[:, i] for i, name in enumerate("abc")})
    query = WorkloadError(domain=SMALL, synthetic=made, workload=Marginals.every(2))
    measurement = Laplace.for_query(query, epsilon=0.05)
    assert measurement.privacy_loss.epsilon() == 0.05
    released = measurement.release(frame, rng=1)
    # Laplace noise of scale 1/(2 n epsilon): beyond 21 scales with probability exp(-21), less than 1e-9.
    reach = 21 / (2 * 5000 * 0.05)
    assert abs(released.value - query(frame)) < reach
    assert abs(released.value - query(frame)) > 0
    assert query.k_marginal_score(released) == pytest.approx(1000 * (1 - query.estimate(released)))
    each = replace(query, by_table=True)
    measured = Gaussian.for_query(each, epsilon=1.0, delta=1e-6, neighboring=Neighboring.REPLACE_ONE)
    assert measured.privacy_loss.epsilon(1e-6) <= 1
    assert each.estimate(measured.release(frame, rng=1)).shape == (3,)
    assert measured.release(frame, rng=1).table()["columns"].tolist() == ["a, b", "a, c", "b, c"]
    with pytest.raises(ParameterError, match="release must be of this query"):
        query.estimate(measured.release(frame, rng=1))
    other = replace(query, synthetic=drawn(SMALL, 5000, 3))
    with pytest.raises(ParameterError, match="release must be of this query"):
        other.estimate(released)


def test_estimates_are_within_their_range() -> None:
    query = WorkloadError(domain=PAIR, synthetic=SYNTHETIC, workload=WORKLOAD)
    measurement = Laplace.for_query(query, epsilon=0.01)
    found = [query.estimate(measurement.release(table([]), rng=seed)) for seed in range(20)]
    assert min(found) == 0
    assert max(found) == 1


@dataclass
class Everything:
    """Counts of more rows than there are people."""

    def counts(self, clique: Any) -> Any:
        return np.full([PAIR.sizes[place] for place in clique], 1 << 50, np.int64)


def test_no_count_is_too_large() -> None:
    made = np.zeros((2**20 - 1, 2), np.int64)
    query = WorkloadError(domain=PAIR, synthetic=made, workload=WORKLOAD, rows=2**38, by_table=True)
    found = np.asarray(query.steps(Everything()))
    assert found.tolist()[3] == 0  # so many rows as are stated, at most
    assert (found[:3] > 0).all()
    assert (found <= LIMIT).all()
    assert found[1] == (2**38 * (2**20 - 1)) * 2
    assert 0 < replace(query, by_table=False).steps(Everything()) <= LIMIT


def test_what_cannot_be_measured_is_refused() -> None:
    good: Any = {"domain": PAIR, "synthetic": SYNTHETIC, "workload": WORKLOAD}
    for changed, message in (
        ({"synthetic": np.zeros((0, 2), np.int64)}, "synthetic must have rows in the domain"),
        ({"synthetic": SYNTHETIC + 7}, "synthetic must hold cells of the domain"),
        ({"rows": 0}, "rows must"),
        ({"rows": 2**38 + 1}, "rows must be at most 2\\*\\*38"),
        ({"synthetic": np.zeros((2**20 + 1, 2), np.int64), "rows": 3}, "rows must .* round part"),
        ({"workload": Marginals([("a",)], weights=[2])}, "workload must have no weights"),
        ({"workload": Marginals([("c",)])}, "column must be one of"),
        ({"workload": ("a",)}, "workload must"),
        ({"by_table": 1}, "by_table must be True or False"),
        ({"domain": {"a": [1]}}, "domain must"),
    ):
        with pytest.raises(ParameterError, match=message):
            WorkloadError(**(good | changed))
    wide = TableDomain({str(n): list(range(300)) for n in range(3)})
    with pytest.raises(ParameterError, match="workload must be of tables of at most 16777216 cells"):
        WorkloadError(domain=wide, synthetic=np.zeros((1, 3), np.int64), workload=Marginals.every(3))
