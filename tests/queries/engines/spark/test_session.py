"""A session on Spark: one way from the question to the ledger, also when a worker dies on the way."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato
from sfumato.errors import EngineError, LedgerMismatch, ParameterError, SchemaError, SourceError
from tests.queries.tables_in_spark import frame
from tests.run_time import run_time
from tests.spark import Cluster, Driver

pytestmark = pytest.mark.spark

if run_time(__name__):
    _PEOPLE = pa.table({
        "person": [n // 2 for n in range(2000)],
        "state": ["a" if n % 3 else "b" for n in range(2000)],
        "income": [float(n % 100) for n in range(2000)],
    })  # fmt: skip
_ASK = """
SELECT WITH DIFFERENTIAL_PRIVACY
OPTIONS(epsilon=0.5, delta=1e-7, max_groups_contributed=2, max_rows_per_group=1)
state, COUNT(*) AS n, AVG(income, contribution_bounds_per_group => (0, 100)) AS income
FROM data GROUP BY state ORDER BY state"""


@pytest.fixture(params=["classic", "connect"])
def session(request: pytest.FixtureRequest, spark: Driver) -> Any:
    return spark.session() if request.param == "classic" else spark.remote()


def _open(source: object, **changes: Any) -> sfumato.Session:
    options: dict[str, Any] = {"privacy_unit": "person", "epsilon": 2.0, "delta": 1e-6}
    return sfumato.connect(source, **(options | changes))


def test_an_answer_is_charged_once_and_given_again(session: Any, tmp_path: Path) -> None:
    ledger = tmp_path / "people.ledger"
    people = frame(session, _PEOPLE)
    with _open(people, ledger=ledger) as first:
        release = first.sql(_ASK)
        table = release.to_arrow()
        assert table["state"].to_pylist() == ["a", "b"]
        near = zip(table["n"].to_pylist(), (1000, 667), strict=True)  # persons
        assert all(abs(n - persons) < 200 for n, persons in near)
        assert all(abs(x - 49.5) < 20 for x in table["income"].to_pylist())
        assert first.sql(_ASK).to_arrow().equals(table)
        assert [entry.committed for entry in first.ledger.entries()] == [True]
    # the same rows in another order and cut in other pieces are the same data
    with _open(people.orderBy("income").repartition(3), ledger=ledger) as again:
        assert again.sql(_ASK).to_arrow().equals(table)
        assert len(again.ledger.entries()) == 1
    with pytest.raises(LedgerMismatch):
        _open(people.limit(1999), ledger=ledger)
    # what DuckDB calls these types is what Spark calls them, but the digest of content is each engine's own
    with pytest.raises(LedgerMismatch):
        _open(_PEOPLE, ledger=ledger)


def test_a_simulated_answer_is_near_that_of_duckdb(session: Any) -> None:
    """The noise is drawn here, from the same seed: only the choice of rows and groups is the engine's."""
    ask = _ASK.replace("max_rows_per_group=1", "max_rows_per_group=10")
    with _open(frame(session, _PEOPLE), rng=5) as spark, _open(_PEOPLE, rng=5) as duckdb:
        assert spark.sql(ask).to_arrow().equals(duckdb.sql(ask).to_arrow())


def test_public_groups_are_listed_or_read(session: Any) -> None:
    states = frame(session, pa.table({"code": ["a", "b", "zz", None, "a"]}))
    people = frame(session, _PEOPLE)
    listed = _ASK.replace("delta=1e-7", "delta=0").replace(
        "max_groups", "group_selection_strategy=PUBLIC_GROUPS, max_groups"
    )
    joined = listed.replace(
        "FROM data",
        "FROM data RIGHT OUTER JOIN (SELECT DISTINCT code FROM states) AS s ON data.state = s.code",
    )
    with _open({"data": people}, public={"states": states}) as opened:
        assert opened.sql(joined).to_arrow()["state"].to_pylist() == [None, "a", "b", "zz"]
        answer = opened.sql(listed, public_groups={"state": ["zz", "b", "a"]}).to_arrow()
        assert answer["state"].to_pylist() == ["a", "b", "zz"]


def test_tables_by_name_and_path(session: Any, tmp_path: Path) -> None:
    pq.write_table(_PEOPLE, tmp_path / "people.parquet")
    session.read.parquet(str(tmp_path / "people.parquet")).createOrReplaceTempView("everyone")
    source = sfumato.SparkSource(session, {"data": "everyone", "other": tmp_path / "people.parquet"})
    with _open(source) as opened:
        assert opened.sql(_ASK).to_arrow().num_rows == 2
        assert opened.sql(_ASK.replace("FROM data", "FROM other")).to_arrow().num_rows == 2
    assert session.table("everyone").columns == ["person", "state", "income"]
    session.catalog.dropTempView("everyone")


def test_a_failure_after_the_charge_keeps_it(session: Any, tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(_PEOPLE, path)
    with _open(sfumato.SparkSource(session, {"data": path}), ledger=tmp_path / "people.ledger") as opened:
        path.rename(tmp_path / "away.parquet")
        with pytest.raises(EngineError, match="the charge stays"):
            opened.sql(_ASK)
        assert [entry.committed for entry in opened.ledger.entries()] == [False]
        (tmp_path / "away.parquet").rename(path)
        assert opened.sql(_ASK).to_arrow().num_rows == 2
        assert [entry.committed for entry in opened.ledger.entries()] == [True]  # nothing had been drawn


def test_what_does_not_go_together_is_refused(session: Any) -> None:
    people = frame(session, _PEOPLE)
    with pytest.raises(SourceError, match="all be frames of Spark"):
        _open({"data": people, "other": _PEOPLE}, privacy_unit={"data": "person", "other": "person"})
    with pytest.raises(ParameterError, match="public"):
        _open(people, public={"states": pa.table({"code": ["a"]})})
    with pytest.raises(ParameterError, match="public"):
        _open(_PEOPLE, public={"states": people})
    with pytest.raises(ParameterError, match="memory_limit"):
        _open(people, memory_limit="1GB")
    with pytest.raises(ParameterError, match="types must be left out for Spark"):
        _open(people, types={"age": "INT64"})
    with pytest.raises(SchemaError, match="private too"):
        _open({"data": people}, public={"DATA": people})
    with pytest.raises(SchemaError, match="privacy_unit"):
        _open(people, privacy_unit="nobody")
    left = [table.name for table in session.catalog.listTables() if table.name.startswith("sfumato")]
    assert left == []


def _visits(session: Any) -> Any:
    """Rows that take seconds to make; every unit is in too many groups."""
    return session.range(0, 300_000, 1, 12).selectExpr(
        "id % 10000 AS person",
        "concat('place ', (id * 7) % 31) AS state",
        "CAST(xxhash64(id) & 127 AS DOUBLE) AS income",
    )


def test_a_worker_killed_in_mid_query_loses_nothing_and_is_charged_once(spark_cluster: Cluster) -> None:
    """The secret and the noise come from a seed, so that both answers must be the same to the last bit."""
    spark = spark_cluster.session()
    with _open(_visits(spark), rng=11) as calm:
        expected = calm.sql(_ASK).to_arrow()
    assert expected.num_rows == 31
    answers: list[pa.Table] = []
    with _open(_visits(spark), rng=11) as disturbed:
        asking = threading.Thread(target=lambda: answers.append(disturbed.sql(_ASK).to_arrow()))
        asking.start()
        tracker, tick = spark.sparkContext.statusTracker(), threading.Event()
        while asking.is_alive() and not _underway(tracker):
            tick.wait(0.02)
        os.kill(spark_cluster.workers[-1], signal.SIGKILL)
        assert asking.is_alive(), "the query ended before the worker did"
        asking.join()
        entries = disturbed.ledger.entries()
    spark_cluster.start_worker()
    assert [answer.equals(expected) for answer in answers] == [True]
    assert [entry.committed for entry in entries] == [True]


def _underway(tracker: Any) -> bool:
    """Tell whether a stage has done some of its tasks and has others to do."""
    found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return any(stage is not None and 0 < stage.numCompletedTasks < stage.numTasks for stage in found)


def test_a_session_that_cannot_answer_is_told_before_anything_is_charged(
    spark: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server may take no rows from its clients, for instance."""
    session = spark.session().newSession()
    rows = frame(session, pa.table({"person": [1, 2, 3]}))

    def refused(*_: object) -> None:
        raise RuntimeError("local relations are not supported")

    with monkeypatch.context() as changed:
        changed.setattr(type(session), "createDataFrame", refused)
        with pytest.raises(SourceError, match="refusal in a trial on rows of its own") as caught:
            _open(rows, privacy_unit="person", ledger=tmp_path / "ledger")
    assert caught.value.__context__ is None
    assert not (tmp_path / "ledger").exists()
    with _open(rows, privacy_unit="person", ledger=tmp_path / "ledger") as opened:
        assert opened.ledger.spent().epsilon == 0


def test_no_columns_are_read_but_those_that_are_meant(session: Any, tmp_path: Path) -> None:
    ledger = tmp_path / "people.ledger"
    people = frame(session, _PEOPLE)
    for columns in (["person", "state"], {"data": ["state", "person"]}):
        with (
            _open(people, columns=columns, ledger=ledger) as opened,
            pytest.raises(SchemaError, match="income"),
        ):
            opened.sql(_ASK)
    # the same content to this ledger, whatever the other columns hold
    with _open(people.selectExpr("person", "state", "-income AS income"), columns=columns, ledger=ledger):
        pass
    with pytest.raises(ParameterError, match="columns of table 'data', got 'county'; name some of 'person'"):
        _open(people, columns=["person", "county"])
    with pytest.raises(ParameterError, match="statement_timeout must be left out for Spark"):
        _open(people, statement_timeout=60)
