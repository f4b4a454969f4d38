"""Executors find what this process finds, to the last bit; a job that fails is an error or made up for."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import EngineError, ParameterError
from sfumato.synthetic import CountBound, Hierarchy, Invariant, TableDomain, TopDown, UnitCounts
from sfumato.synthetic.topdown.workers import spark_families
from sfumato.synthetic.topdown.workers.spark_families import SparkFamilies
from tests.cases import cases
from tests.spark import Cluster

DOMAIN = TableDomain(sex=["f", "m"], age=[0, 1, 2])


def made() -> tuple[TopDown, UnitCounts]:
    places = Hierarchy.from_table(
        pa.table({"state": np.arange(16) // 8, "county": np.arange(16) // 4, "town": np.arange(16)}),
        ["state", "county", "town"],
    )
    rng = np.random.default_rng(3)
    dense = rng.poisson(2, (16, 6))
    town, cell = np.indices(dense.shape)
    rows = UnitCounts(town.ravel(), cell.ravel(), dense.ravel())
    totals, women = dense.sum(axis=1), dense[:, :3].sum(axis=1)
    bounds = [
        CountBound("town", upper={i: int(totals[i]) + 1 for i in range(0, 16, 3)}),
        CountBound("town", lower={i: [int(women[i]), 0] for i in range(0, 16, 2)}, columns=["sex"]),
    ]
    mechanism = TopDown(
        hierarchy=places, domain=DOMAIN, queries=[(), ("sex", "age")], rho=0.2, bounds=bounds,
        invariants=[Invariant("state", ["age"])],
    )  # fmt: skip
    return mechanism, rows


class Frame:
    """A frame whose rows are fitted here, as an executor gets them: last ones first."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def repartition(self, parts: int) -> Frame:
        assert parts == self.table.num_rows
        return self

    def mapInArrow(self, function: Any, schema: str) -> Frame:
        assert schema == "number long, fitted binary"
        rows = self.table.to_batches(max_chunksize=1)[::-1]
        return Frame(pa.Table.from_batches(list(pickle.loads(pickle.dumps(function))(rows))))

    def collect(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.table.to_pylist()
        return rows


class Executors:
    """What a Spark session does with families, without Spark."""

    def __init__(self, *, failing: bool = False) -> None:
        self.jobs: list[int] = []
        self.failing = failing

    def createDataFrame(self, table: pa.Table) -> Frame:
        if self.failing:
            raise RuntimeError("no executor")
        self.jobs.append(table.num_rows)
        return Frame(table)

    def sql(self, text: str) -> None:
        raise AssertionError(text)


@cases(
    ("intervals", "counts", "size"),
    [(True, 1 << 17, 1 << 20), (False, 30, 1 << 20), (True, 30, 1 << 20), (False, 30, 6000)],
)
def test_families_sent_in_parts_are_those_of_one_process(
    intervals: bool, counts: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism, rows = made()
    here = mechanism.release(rows, rng=5, intervals=intervals)
    monkeypatch.setattr(spark_families, "_COUNTS", counts)
    monkeypatch.setattr(spark_families, "_BYTES", size)
    executors = Executors()
    there = mechanism.release(rows, rng=5, intervals=intervals, spark=executors)
    assert there.to_json() == here.to_json()
    assert len(executors.jobs) == 3 if size > 6000 else len(executors.jobs) > 3
    assert (max(executors.jobs) > 1) == (counts < 1000)


def test_a_failed_job_is_an_error_or_made_up_for() -> None:
    mechanism, rows = made()
    failing = Executors(failing=True)
    with pytest.raises(EngineError, match="Spark must fit the families of a level, got a failed job"):
        mechanism.release(rows, rng=5, spark=failing)
    found = mechanism.release(rows, rng=5, spark=SparkFamilies(failing, otherwise_here=True))
    assert found.to_json() == mechanism.release(rows, rng=5).to_json()
    for wrong in (5, SimpleNamespace(sql=1)):
        with pytest.raises(ParameterError, match="spark must be a Spark session"):
            mechanism.release(rows, spark=wrong)


def test_what_cannot_be_read_of_a_job_is_made_up_for_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Executors of another version, or a row that is not there: noise was drawn under a charge."""
    mechanism, rows = made()
    here = mechanism.release(rows, rng=5).to_json()
    spoiled: list[Callable[[list[dict[str, Any]]], list[dict[str, Any]]]] = [
        lambda came: came[1:],
        lambda came: [{**row, "fitted": b"cno_such_module\nFitted\n."} for row in came],
    ]
    for spoil in spoiled:
        monkeypatch.setattr(Frame, "collect", lambda self, spoil=spoil: spoil(self.table.to_pylist()))
        found = mechanism.release(rows, rng=5, spark=SparkFamilies(Executors(), otherwise_here=True))
        assert found.to_json() == here
        with pytest.raises(EngineError, match="Spark must fit the families of a level, got a failed job"):
            mechanism.release(rows, rng=5, spark=Executors())


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_a_cluster_finds_the_same(kind: str, spark_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    session = spark_cluster.session() if kind == "classic" else spark_cluster.remote()
    mechanism, rows = made()
    monkeypatch.setattr(spark_families, "_COUNTS", 40)
    here = mechanism.release(rows, rng=5)
    assert mechanism.release(rows, rng=5, spark=session).to_json() == here.to_json()
