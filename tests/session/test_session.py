"""The front door end to end, on the real data that ships."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.cli.data import ACS
from sfumato.errors import (
    BudgetExceeded,
    LedgerMismatch,
    LedgerUnavailable,
    OptionError,
    ParameterError,
    SchemaError,
    SimulatedCharge,
    SourceError,
    UnsupportedSql,
)
from sfumato.queries.release.intervals import central_interval, thresholded_interval
from sfumato.queries.release.record import ReleaseRecord
from tests.cases import cases

QUERY = """
    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={}, delta=1e-8, max_groups_contributed=1)
    state, COUNT(*) AS n, AVG(income, contribution_bounds_per_group => (0, 200000)) AS income
    FROM data GROUP BY state
"""


def _connect(ledger: Path | None = None, *, epsilon: float = 2.0, rng: int | None = None) -> sf.Session:
    return sf.connect(ACS, privacy_unit="person_id", epsilon=epsilon, delta=1e-7, ledger=ledger, rng=rng)


def test_the_answer_is_near_the_truth_and_the_intervals_hold_it() -> None:
    people = pq.read_table(ACS, columns=["state", "income"]).to_pandas()
    people["income"] = people["income"].clip(0, 200000)
    truth = people.groupby("state")["income"].agg(["size", "mean"])
    with _connect(rng=11) as session:
        frame = session.sql(QUERY.format(0.5)).to_pandas(intervals=True).set_index("state")
    assert list(frame.index) == sorted(truth.index)
    assert (abs(frame["n"] - truth["size"]) < 150).all()  # 25 scales of the noise: 1e-10
    held = (frame["income_lower"] <= truth["mean"]) & (truth["mean"] <= frame["income_upper"])
    assert held.sum() >= 13  # of 16, each with coverage 0.95 at least


def test_noise_is_fresh_and_a_repeated_question_is_the_same_answer_for_free(tmp_path: Path) -> None:
    with _connect(tmp_path / "a.ledger") as session:
        first = session.sql(QUERY.format(0.5))
        spent = session.ledger.remaining().epsilon
        again = session.sql(QUERY.format(0.5).replace("\n", " "))
        assert again.replayed
        assert not first.replayed
        assert again.to_arrow(intervals=True).equals(first.to_arrow(intervals=True))
        assert again.explain() == first.explain()
        assert session.ledger.remaining().epsilon == spent
    with _connect(tmp_path / "b.ledger") as session:
        assert not session.sql(QUERY.format(0.5)).to_arrow().equals(first.to_arrow())
    with _connect(tmp_path / "a.ledger") as session:
        assert session.sql(QUERY.format(0.5)).to_arrow().equals(first.to_arrow())


def test_over_budget_is_refused_before_the_data_is_read() -> None:
    with _connect(epsilon=0.6) as session:
        session.sql(QUERY.format(0.5))
        before = session.ledger.remaining(1e-8)
        with pytest.raises(BudgetExceeded) as refused:
            session.sql(QUERY.format(0.4))
        assert session.ledger.remaining(1e-8) == before
        assert refused.value.requested.epsilon == pytest.approx(0.4, rel=1e-6)
        answerable = refused.value.remaining.answerable_epsilon
        assert answerable is not None
        assert answerable <= 0.1 + 1e-6
        session.sql(QUERY.format(0.09))


def test_four_answers_of_half_an_epsilon_fit_into_two() -> None:
    with _connect() as session:
        for number in range(4):
            session.sql(QUERY.format(0.5).replace("AS n", f"AS n{number}"))
        with pytest.raises(BudgetExceeded):
            session.sql(QUERY.format(0.5).replace("AS n", "AS n5"))


def test_rare_groups_are_suppressed() -> None:
    table = pa.table({"id": range(1000), "g": ["common"] * 997 + ["rare"] * 3})
    with sf.connect(table, privacy_unit="id", epsilon=1.0, delta=1e-6, rng=3) as session:
        release = session.sql(
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-7, max_groups_contributed=1)"
            " g, COUNT(*) AS n FROM data GROUP BY g"
        )
    assert release.to_arrow()["g"].to_pylist() == ["common"]


def test_a_group_just_over_the_threshold_has_an_interval_that_says_so() -> None:
    table = pa.table({"id": range(35), "g": ["few"] * 35})
    with sf.connect(table, privacy_unit="id", epsilon=1.0, delta=1e-4, rng=3) as session:
        release = session.sql(
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-15, max_groups_contributed=1)"
            " g, COUNT(*) AS n FROM data GROUP BY g"
        )
    answer, record = release.to_arrow(intervals=True), release.record
    assert record.threshold is not None
    noisy = answer["n"].to_numpy()
    lower, upper = thresholded_interval(record.measures[0].noise, noisy, record.threshold, 0.95)
    assert (answer["n_lower"][0].as_py(), answer["n_upper"][0].as_py()) == (lower[0], upper[0])
    plain = central_interval(record.measures[0], noisy, 0.95)
    assert (lower[0], upper[0]) != (plain[0][0], plain[1][0])


def test_public_groups_are_all_shown_in_the_order_asked_for() -> None:
    table = pa.table({"id": range(300), "g": ["a"] * 200 + ["b"] * 100})
    with sf.connect(table, privacy_unit="id", epsilon=5.0, rng=3) as session:
        release = session.sql(
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0, max_groups_contributed=1)"
            " g, COUNT(*) AS n FROM data GROUP BY g ORDER BY n DESC LIMIT 2",
            public_groups={"g": ["b", "z", "a"]},
        )
    assert release.to_arrow()["g"].to_pylist() == ["a", "b"]


def test_each_row_a_unit_and_integer_sums_stay_integers() -> None:
    table = pa.table({"x": np.arange(1000) % 10})
    with sf.connect(table, privacy_unit=sf.ROW, epsilon=1.0, rng=5) as session:
        release = session.sql(
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0)"
            " SUM(x, contribution_bounds_per_row => (0, 9)) AS s, COUNT(*) AS n FROM data"
        )
    answer = release.to_arrow()
    assert answer.schema.field("s").type == pa.int64()
    assert abs(answer["s"][0].as_py() - 4500) < 600
    assert abs(answer["n"][0].as_py() - 1000) < 70


def test_plain_select_with_defaults_and_simulation_is_marked() -> None:
    table = pa.table({"id": range(100)})
    with sf.connect(
        table, privacy_unit="id", epsilon=1.0, defaults={"epsilon": 0.5, "delta": 0.0}, rng=1
    ) as session:
        release = session.sql("SELECT COUNT(*) AS n FROM data")
        assert [entry.simulated for entry in session.ledger.entries()] == [True]
    assert release.simulated
    assert release.epsilon == 0.5


def test_explaining_costs_nothing() -> None:
    with _connect() as session:
        before = session.ledger.remaining()
        text = session.explain(QUERY.format(0.5))
        assert session.ledger.remaining() == before
    assert "at most one row per unit and group" in text
    assert "noisy number of units is at least" in text


@cases(
    ("arguments", "error"),
    [
        ({"privacy_unit": "nobody", "epsilon": 1.0}, SchemaError),
        ({"privacy_unit": 3, "epsilon": 1.0}, ParameterError),
        ({"privacy_unit": "person_id"}, ParameterError),
        ({"privacy_unit": "person_id", "epsilon": 1.0, "rho": 1.0}, ParameterError),
        ({"privacy_unit": "person_id", "epsilon": -1.0}, ParameterError),
        ({"privacy_unit": "person_id", "epsilon": 1.0, "delta": 1.0}, ParameterError),
        ({"privacy_unit": {"other": "person_id"}, "epsilon": 1.0}, ParameterError),
        ({"privacy_unit": "person_id", "epsilon": 1.0, "public": {"DATA": ACS}}, SchemaError),
    ],
)
def test_bad_connections_are_refused(arguments: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        sf.connect(ACS, **arguments)  # type: ignore[call-overload]


def test_a_seed_never_meets_a_ledger_file(tmp_path: Path) -> None:
    with pytest.raises(SimulatedCharge):
        _connect(tmp_path / "real.ledger", rng=1)
    assert not (tmp_path / "real.ledger").exists()


def test_a_ledger_keeps_its_budget_and_its_dataset(tmp_path: Path) -> None:
    path = tmp_path / "acs.ledger"
    _connect(path).close()
    with pytest.raises(LedgerMismatch):
        _connect(path, epsilon=3.0)
    with pytest.raises(LedgerMismatch):
        sf.connect(
            pa.table({"person_id": [1]}), privacy_unit="person_id", epsilon=2.0, delta=1e-7, ledger=path
        )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("SELECT * FROM data", UnsupportedSql),
        ("SELECT COUNT(*) FROM data", OptionError),
        (QUERY.format(0.5).replace("income,", "wealth,"), SchemaError),
    ],
)
def test_refused_queries_charge_nothing(text: str, error: type[Exception]) -> None:
    with _connect() as session:
        with pytest.raises(error):
            session.sql(text)
        assert session.ledger.entries() == ()


def test_odd_data_is_answered_like_any_other() -> None:
    table = pa.table(
        {
            "id": pa.array([1, None, 2, 3, 4], pa.int64()),
            "x": pa.array([float("nan"), 1.0, float("inf"), None, 2.0]),
        }
    )
    for rows in (table, table.slice(0, 0)):
        with sf.connect(rows, privacy_unit="id", epsilon=1.0, rng=2) as session:
            release = session.sql(
                "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0)"
                " AVG(10 / x, contribution_bounds_per_group => (0, 5)) AS a, COUNT(x) AS c FROM data"
            )
            answer = release.to_arrow(intervals=True)
        assert answer.num_rows == 1
        assert 0 <= answer["a"][0].as_py() <= 5


def test_any_names_may_be_given_to_keys() -> None:
    table = pa.table({"id": range(900), "m0": ["a", "b", "c"] * 300, "k1": [1, 2] * 450})
    text = """SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=9, delta=1e-6, max_groups_contributed=1)
        {}, COUNT(*) AS n FROM data GROUP BY {} ORDER BY 1"""
    with sf.connect(table, privacy_unit="id", epsilon=30.0, delta=1e-5, rng=5) as session:
        assert session.sql(text.format("m0", "m0")).to_arrow()["m0"].to_pylist() == ["a", "b", "c"]
        two = session.sql(text.format("k1 AS k0, m0 AS k1", "data.k1, m0")).to_arrow()
    assert two["k0"].to_pylist() == [1, 1, 1, 2, 2, 2]
    assert sorted(two["k1"].to_pylist()) == ["a", "a", "b", "b", "c", "c"]


def test_a_release_of_a_later_version_is_named() -> None:
    with _connect(rng=1) as session:
        payload = session.sql(QUERY.format(0.5)).record.to_bytes()
    assert ReleaseRecord.from_bytes(payload).to_bytes() == payload
    later = re.sub(rb'"version":1}', b'"version":9}', payload)
    with pytest.raises(LedgerUnavailable, match="install a newer sfumato"):
        ReleaseRecord.from_bytes(later)


def test_a_release_that_finds_no_room_stays_charged_and_says_so(tmp_path: Path) -> None:
    many = {"state": [str(number) for number in range(5000)]}
    with _connect(tmp_path / "small.ledger") as session:
        with session.ledger._store.transaction(write=False) as connection:
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {pages + 5}")
        with pytest.raises(LedgerUnavailable, match="charge 1 stays") as told:
            session.sql(QUERY.format(0.5), public_groups=many)
        assert "full disk" in str(told.value)
        assert "nothing was charged" not in str(told.value)
        assert [entry.committed for entry in session.ledger.entries()] == [False]
        assert not session.sql(QUERY.format(0.5), public_groups=many).replayed
        assert [entry.committed for entry in session.ledger.entries()] == [False, True]


def _told_in_a_fork(work: Callable[[], object]) -> bytes:
    """Return what the error of work says in a forked child; one that hangs is killed by its own alarm."""
    estimator, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            work()
        except SourceError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(estimator, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return told


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
def test_a_session_is_refused_in_a_forked_child_before_anything_is_charged(tmp_path: Path) -> None:
    with _connect(tmp_path / "forked.ledger") as session:
        session.sql(QUERY.format(0.25))
        for work in (session.sql, session.explain):
            told = _told_in_a_fork(lambda work=work: work(QUERY.format(0.5)))  # type: ignore[misc]
            assert b"connect again in the child" in told
        _told_in_a_fork(session.close)
        assert len(session.ledger.entries()) == 1
        session.sql(QUERY.format(0.5))


def test_a_closed_session_says_that_it_is_closed() -> None:
    session = _connect()
    session.close()
    for work in (session.sql, session.explain):
        with pytest.raises(SourceError, match="session must be open, got a closed one"):
            work(QUERY.format(0.5))
    session.close()


def test_equal_seeds_give_equal_answers_also_where_units_lose_groups() -> None:
    table = pa.table({"id": [i % 6 for i in range(60)], "g": ["abc"[(i * 7 // 5) % 3] for i in range(60)]})
    answers = []
    for seed in (5, 5, 6, 7):
        with sf.connect(table, privacy_unit="id", epsilon=1e6, rng=seed) as session:
            release = session.sql(
                "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e5, delta=0, max_groups_contributed=1)"
                " g, COUNT(*) AS n FROM data GROUP BY g",
                public_groups={"g": ["a", "b", "c"]},
            )
        answers.append(release.to_arrow()["n"].to_pylist())
    assert answers[0] == answers[1]
    assert answers[1:] != [answers[1]] * 3


@cases("bounds", ["(5, 5)", "(0, 0)", "(-5, -5)", "(0.5, 0.5)", "(0.1, 0.1)", "(1e150, 1e150)"])
def test_a_mean_within_equal_bounds_is_their_number(bounds: str) -> None:
    bound = float(bounds[1:].split(",", maxsplit=1)[0])
    text = f"""SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.1, delta=0)
        AVG(income, contribution_bounds_per_group => {bounds}) AS a,
        SUM(income, contribution_bounds_per_group => (0, 1000)) AS s FROM data"""
    with _connect(rng=4) as session:
        assert f"clamped to [{bound:g}, {bound:g}]" in session.explain(text)
        answer = session.sql(text).to_arrow(intervals=True).to_pylist()[0]
    assert (answer["a"], answer["a_lower"], answer["a_upper"]) == (bound, bound, bound)


def test_a_mean_lies_within_its_bounds_as_they_were_given() -> None:
    table = pa.table({"x": [9.0] * 100})
    with sf.connect(table, privacy_unit=sf.ROW, epsilon=1e4, rng=4) as session:
        release = session.sql(
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e3, delta=0)"
            " AVG(x, contribution_bounds_per_group => (0.1, 0.3)) AS a FROM data"
        )
    answer = release.to_arrow(intervals=True).to_pylist()[0]
    assert 0.29 < answer["a"] <= 0.3
    assert answer["a_upper"] <= 0.3


@pytest.mark.parametrize(
    ("units", "others"),
    [
        (sf.ROW, "row"),
        ({"a": "row", "b": "id"}, {"a": sf.ROW, "b": "id"}),
        ({"a": "x, b: y", "b": "id"}, {"a": "x", "b": "y, b: id"}),
    ],
)
def test_a_ledger_tells_units_apart_by_their_words(tmp_path: Path, units: object, others: object) -> None:
    names = ["row", "id", "x", "x, b: y", "y, b: id"]
    table = pa.table({name: [1, 2, 3] for name in names})
    source = {"a": table, "b": table} if isinstance(units, dict) else table
    path = tmp_path / "units.ledger"
    for unit in (units, units):
        sf.connect(source, privacy_unit=unit, epsilon=1.0, ledger=path).close()  # type: ignore[call-overload]
    with pytest.raises(LedgerMismatch, match="privacy_unit must be the one"):
        sf.connect(source, privacy_unit=others, epsilon=1.0, ledger=path)  # type: ignore[call-overload]


def test_explaining_says_what_the_budget_can_never_answer() -> None:
    with _connect() as session:
        assert "does not fit into" in session.explain(QUERY.format(5))
        assert "does not fit into" not in session.explain(QUERY.format(0.5))


@cases(
    ("wrong", "told"),
    [
        ({"defaults": [1]}, "defaults must be a mapping, got a value of type list; pass one such as"),
        ({"public": "regions.csv"}, "public must be a mapping, got a value of type str; pass one such as"),
        ({"ledger": 5}, "path must be a path, a postgresql:"),
        ({"epsilon": -1.0}, "epsilon must be positive and finite, got -1.0; use 1.0"),
        ({"delta": 1.5}, "delta must be in .*, got 1.5; use 1e-7"),
        (
            {"epsilon": None},
            "budget must be one of epsilon, rho and mu, but it is given by none of them; state",
        ),
        ({"privacy_unit": ["id"]}, "privacy_unit must be a tuple where it is several columns"),
    ],
)
def test_arguments_of_the_wrong_kind_are_refused_with_a_remedy(wrong: dict[str, Any], told: str) -> None:
    table = pa.table({"id": [1, 2]})
    with pytest.raises(ParameterError, match=told):
        sf.connect(table, **{"privacy_unit": "id", "epsilon": 1.0, "delta": 1e-6, **wrong})
