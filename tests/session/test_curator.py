"""Long queries: cancelled at once, with their charge; progress on the curator's own terminal only."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import ParameterError, QueryCancelled
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.engines.postgres.engine import PostgresEngine
from sfumato.session import progress, terminal_progress
from tests.keyboard import interrupt, interruptible
from tests.postgres import Cluster
from tests.queries.tables_in_postgres import load
from tests.run_time import run_time

if run_time(__name__):
    DATA = pa.table({"id": range(1000), "g": [i % 3 for i in range(1000)]})

TEXT = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS n FROM data"


def _endless(monkeypatch: pytest.MonkeyPatch, began: threading.Event) -> None:
    """Let the next job of an engine never end by itself."""
    compute = DuckDBEngine._compute

    def run(self: DuckDBEngine, *job: Any) -> pa.Table:
        monkeypatch.setattr(DuckDBEngine, "_compute", compute)
        began.set()
        self._connection.execute("SELECT sum(range * 7 % 13) FROM range(1000000000000)").fetchall()
        return compute(self, *job)

    monkeypatch.setattr(DuckDBEngine, "_compute", run)


def _soon(began: threading.Event, act: Callable[[], object]) -> threading.Thread:
    def run() -> None:
        began.wait(60)
        act()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.mark.parametrize("by_keyboard", [False, True])
def test_a_query_is_cancelled_and_its_charge_stays(
    monkeypatch: pytest.MonkeyPatch, *, by_keyboard: bool
) -> None:
    began = threading.Event()
    with sf.connect(DATA, privacy_unit="id", epsilon=2, delta=1e-6, threads=1) as session:
        _endless(monkeypatch, began)
        ways: dict[bool, Callable[[], object]] = {True: interrupt, False: session.cancel}
        thread = _soon(began, ways[by_keyboard])
        error = KeyboardInterrupt if by_keyboard else QueryCancelled
        with interruptible(), pytest.raises(error, match="its charge stays"):
            session.sql(TEXT)
        thread.join()
        (entry,) = session.ledger.entries()
        assert entry.epsilon == pytest.approx(0.5, rel=1e-6)
        assert not entry.committed
        assert session.cancel() is False  # nothing is computed now
        # No noise was drawn: it is answered under its charge, and the engine is as good as new.
        assert not session.sql(TEXT).replayed
        assert [each.committed for each in session.ledger.entries()] == [True]


def test_limits_are_cancelled_too(monkeypatch: pytest.MonkeyPatch) -> None:
    began = threading.Event()
    text = TEXT.replace("delta=0", "delta=1e-7").replace("COUNT(*)", "g, COUNT(*)") + " GROUP BY g"
    with sf.connect(DATA, privacy_unit="id", epsilon=2, delta=1e-6, threads=1) as session:
        _endless(monkeypatch, began)
        thread = _soon(began, session.cancel)
        with pytest.raises(QueryCancelled, match="its charge stays"):
            session.suggest_limits(text, epsilon=0.5, groups=3)
        thread.join()
        assert len(session.ledger.entries()) == 1


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_goes_to_the_curators_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert progress.display_of(None, analyst=None) is None  # standard error is no terminal here
    assert progress.display_of(False, analyst="ada") is None
    assert progress.display_of(True, analyst=None) is terminal_progress.shown
    monkeypatch.setattr(sys, "stderr", _Terminal())
    assert progress.display_of(None, analyst=None) is terminal_progress.shown
    assert progress.display_of(None, analyst="ada") is None
    monkeypatch.setattr(sys, "stderr", None)
    assert progress.display_of(None, analyst=None) is None
    for given, analyst, words in (
        (True, "ada", "left out for an analyst"),
        ("yes", None, "True, False or None"),
    ):
        with pytest.raises(ParameterError, match=words):
            progress.display_of(given, analyst=analyst)  # type: ignore[arg-type]


def test_a_long_query_is_shown_and_a_short_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for patience, many in ((0.0, 1), (1e9, 0)):
        terminal = _Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setattr(terminal_progress, "_PATIENCE", patience)
        with terminal_progress.shown() as show:
            show(None)
            show(42.0)
        assert terminal.getvalue().count("Ctrl-C cancels") >= many
        assert bool(terminal.getvalue()) == bool(many)


def test_an_engine_counts_what_is_done_only_where_it_is_shown() -> None:
    with sf.connect(DATA, privacy_unit="id", epsilon=1, rng=1, progress=True) as session:
        engine = session.engine
        assert isinstance(engine, DuckDBEngine)
        assert engine.display is terminal_progress.shown
        shown = engine._connection.execute("SELECT current_setting('enable_progress_bar_print')").fetchall()
        assert shown == [(False,)]
        assert session.sql(TEXT).to_arrow().num_rows == 1
    with sf.connect(DATA, privacy_unit="id", epsilon=1, rng=1) as session:
        assert isinstance(session.engine, DuckDBEngine)
        assert session.engine.display is None
        assert session.engine._percent() is None


def test_an_analyst_is_shown_nothing() -> None:
    with pytest.raises(ParameterError, match="left out for an analyst"):
        sf.connect(DATA, privacy_unit="id", epsilon=1, analyst="ada", progress=True)


@pytest.mark.postgres
@pytest.mark.parametrize("by_keyboard", [False, True])
def test_a_query_is_cancelled_on_postgresql(
    postgres: Cluster, monkeypatch: pytest.MonkeyPatch, *, by_keyboard: bool
) -> None:
    url, began, compute = postgres.database(), threading.Event(), PostgresEngine._compute
    with psycopg.connect(url) as connection:
        load(connection, "data", DATA)

    def run(self: PostgresEngine, *job: Any) -> pa.Table:
        monkeypatch.setattr(PostgresEngine, "_compute", compute)
        with self._transaction() as connection:
            began.set()
            connection.execute("SELECT pg_sleep(200)")
        return compute(self, *job)

    monkeypatch.setattr(PostgresEngine, "_compute", run)
    with sf.connect(url, privacy_unit="id", epsilon=2, delta=1e-6) as session:
        ways: dict[bool, Callable[[], object]] = {True: interrupt, False: session.cancel}
        thread = _soon(began, ways[by_keyboard])
        error = KeyboardInterrupt if by_keyboard else QueryCancelled
        with interruptible(), pytest.raises(error, match="its charge stays"):
            session.sql(TEXT)
        thread.join()
        assert [each.committed for each in session.ledger.entries()] == [False]
        assert session.sql(TEXT).to_arrow().num_rows == 1
