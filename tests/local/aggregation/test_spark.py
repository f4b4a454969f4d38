"""Reports counted inside Spark: the same bytes as one aggregator's, also when a worker dies on the way."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato import local
from sfumato.errors import ParameterError, SchemaError, SourceError
from sfumato.local import Domain, RandomizedResponse, Rappor
from tests.spark import Cluster, Driver

pytestmark = pytest.mark.spark

ORACLE = RandomizedResponse(epsilon=1.0, domain=Domain(range(1000)))


@pytest.fixture(params=["classic", "connect"])
def session(request: pytest.FixtureRequest, spark: Driver) -> Any:
    return spark.session() if request.param == "classic" else spark.remote()


def single(rows: Any, protocol: Any = ORACLE) -> bytes:
    made = protocol.aggregator()
    for row in rows:
        made.add(row)
    state: bytes = made.to_bytes()
    return state


def test_the_state_is_that_of_one_aggregator(session: Any) -> None:
    strange = b"\xff" * ORACLE.device.width
    rows = [*ORACLE.randomize_batch(np.arange(3000) % 1000, 1), None, b"", b"nonsense", strange]
    frame = session.createDataFrame(pa.table({"a `report`": rows}), schema="`a ``report``` BINARY")
    for cut, held in ((frame, rows), (frame.repartition(13), rows), (frame.limit(0), [])):
        assert local.aggregate_spark(ORACLE, cut, "a `report`").to_bytes() == single(held)
    assert local.aggregate_spark(ORACLE, frame, "a `report`").refused["width"] == 3


def test_any_protocol_and_other_columns(session: Any) -> None:
    rappor = Rappor(bits=32, cohorts=8)
    rows = list(rappor.randomize_batch(["a", "b", "c"] * 200, 1))
    table = pa.table({"report": rows, "number": range(600)})
    frame = session.createDataFrame(table, schema="report BINARY, number BIGINT")
    assert local.aggregate_spark(rappor, frame).to_bytes() == single(rows, rappor)
    for column in ("number", "reports"):
        with pytest.raises(SchemaError, match="column must be one of type BINARY"):
            local.aggregate_spark(rappor, frame, column)
    with pytest.raises(ParameterError, match="frame must be a DataFrame"):
        local.aggregate_spark(rappor, table)
    with pytest.raises(SchemaError, match="column must be one of type BINARY, got binary and binary"):
        local.aggregate_spark(rappor, frame.selectExpr("report", "report"))
    with pytest.raises(SourceError, match="Spark must count"):
        local.aggregate_spark(rappor, frame.selectExpr("report", "report AS Report"))
    broken = frame.selectExpr("CAST(assert_true(number < 0, 'secret') AS BINARY) AS report")
    with pytest.raises(SourceError, match="Spark must count") as told:
        local.aggregate_spark(rappor, broken)
    assert "secret" not in str(told.value)


def test_a_stopped_session_is_told(spark: Driver) -> None:
    remote = spark.new_remote()
    frame = remote.createDataFrame(pa.table({"report": [b"ab"]}), schema="report BINARY").filter(
        "report > X'00'"
    )
    remote.stop()
    with pytest.raises(SourceError, match="Spark must count"):
        local.aggregate_spark(ORACLE, frame)


def _hashed(session: Any) -> Any:
    """Reports that take seconds to make, the same whenever they are read."""
    layout = ORACLE.device.layout.pack(np.arange(1000, dtype=np.uint64))
    known = session.createDataFrame(
        pa.table({"code": range(1000), "report": [row.tobytes() for row in layout]}),
        schema="code BIGINT, report BINARY",
    )
    rows = session.range(0, 2_000_000, 1, 12).selectExpr("pmod(xxhash64(id), 1000) AS code")
    return rows.join(known.hint("broadcast"), "code").select("report")


def test_a_killed_worker_changes_nothing(spark_cluster: Cluster) -> None:
    spark = spark_cluster.session()
    calm = local.aggregate_spark(ORACLE, _hashed(spark))
    assert calm.accepted == 2_000_000
    found: list[bytes] = []
    counting = threading.Thread(
        target=lambda: found.append(local.aggregate_spark(ORACLE, _hashed(spark)).to_bytes())
    )
    counting.start()
    tracker, tick = spark.sparkContext.statusTracker(), threading.Event()
    while counting.is_alive() and not _underway(tracker):
        tick.wait(0.02)
    os.kill(spark_cluster.workers[-1], signal.SIGKILL)
    assert counting.is_alive(), "the count ended before the worker did"
    counting.join()
    spark_cluster.start_worker()
    assert found == [calm.to_bytes()]


def _underway(tracker: Any) -> bool:
    """Tell whether a stage has done some of its tasks and has others to do."""
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return any(stage is not None and 0 < stage.numCompletedTasks < stage.numTasks for stage in stages)
