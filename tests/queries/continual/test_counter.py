"""Counters: sums so far follow the truth, cost once, stay what they were, and bound every unit for good."""

from __future__ import annotations

import datetime as dt
import functools
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, LedgerMismatch, ParameterError, SourceError, UnsupportedSql
from sfumato.mechanisms import BinaryTree
from sfumato.queries.continual.counter import Counter
from tests.cases import cases
from tests.chance import accepts_only
from tests.drawings import band, line, new_axes

START, DAYS, GROUPS = dt.date(2026, 1, 1), 8, ["a", "b", "c"]


@functools.cache
def visits(seed: int = 1, units: int = 300) -> pa.Table:
    rng = np.random.default_rng(seed)
    rows = units * 6
    days = rng.integers(-2, DAYS + 2, rows)
    return pa.table(
        {
            "person": rng.integers(0, units, rows),
            "day": pa.array(
                [None if rng.random() < 0.02 else START + dt.timedelta(int(day)) for day in days]
            ),
            "place": rng.choice([*GROUPS, "other"], rows),
            "spent": np.round(rng.gamma(2, 10, rows), 2),
        }
    )


def opened(session: sf.Session, **given: Any) -> Counter:
    rows = session.table().group_by("place", public_groups={"place": GROUPS})
    query = rows.agg(n=sf.count(), spent=sf.sum("spent", bounds=(0, 50)))
    terms: dict[str, Any] = {
        "moment": "day",
        "start": START,
        "every": "day",
        "steps": DAYS,
        "epsilon": 2.0,
        "delta": 1e-7,
        "max_periods": 3,
        **given,
    }
    return session.counter(query.options(max_groups_contributed=terms.pop("max_groups", 2)), **terms)


def session(table: pa.Table, **given: Any) -> sf.Session:
    return sf.connect(table, **{"privacy_unit": "person", "epsilon": 5, "delta": 1e-6, "rng": 3, **given})  # type: ignore[no-any-return]


def truth(table: pa.Table, periods: int, max_periods: int) -> dict[str, np.ndarray[Any, Any]]:
    """Sums so far by hand, where a unit keeps all its groups: shape (periods, groups)."""
    counts, sums = (np.zeros((periods, len(GROUPS))) for _ in range(2))
    people: dict[int, list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        if row["day"] and START <= row["day"] < START + dt.timedelta(DAYS):
            people.setdefault(row["person"], []).append(row)
    for inside in people.values():
        for day in sorted({row["day"] for row in inside})[:max_periods]:
            step = (day - START).days
            for place, group in enumerate(GROUPS):
                spent = [row["spent"] for row in inside if row["day"] == day and row["place"] == group]
                if spent and step < periods:
                    counts[step:, place] += 1
                    sums[step:, place] += min(50, sum(spent))
    return {"n": counts, "spent": sums}


def released(release: Any, name: str) -> np.ndarray[Any, Any]:
    return release.to_arrow()[name].to_numpy().reshape(-1, len(GROUPS))  # type: ignore[no-any-return]


def test_sums_so_far_follow_the_truth_within_their_intervals() -> None:
    table = visits()
    with session(table, epsilon=2000) as book, opened(book, epsilon=1000, max_groups=3) as counter:
        first = counter.refresh(START + dt.timedelta(5))
        assert first.periods == 5
        assert first.to_arrow().num_rows == 15
        last = counter.refresh(START + dt.timedelta(400))
    assert last.periods == DAYS
    expected = truth(table, DAYS, 3)
    for name, slack in (("n", 2.0), ("spent", 60.0)):
        assert np.abs(released(last, name) - expected[name]).max() < slack
        assert np.array_equal(released(last, name)[:5], released(first, name))
    assert last.to_arrow()["period"][3 * 3].as_py() == START + dt.timedelta(3)


@pytest.mark.parametrize("seeds", [4, 8])
def test_intervals_hold_the_truth_and_noise_is_there(seeds: int) -> None:
    table = visits()
    expected = truth(table, DAYS, 3)
    inside, different = [], []
    for seed in range(seeds):
        with session(table, rng=seed) as book, opened(book, max_groups=3) as counter:
            release = counter.refresh(START + dt.timedelta(DAYS)).to_arrow(intervals=True, level=0.9)
        for name, exact in expected.items():
            low, high, value = (
                release[f"{name}{end}"].to_numpy().reshape(DAYS, -1) for end in ("_lower", "_upper", "")
            )
            inside.append((low <= exact) & (exact <= high))
            different.append(value != exact)

    # 48 intervals of level 0.9 for each seed, those of one counter correlated
    def check(level: float) -> None:
        assert abs(np.mean(inside) - level) < 0.06 * np.sqrt(12 / seeds)

    accepts_only(check, 0.9, as_of_half=0.5, less=0.77)
    assert np.mean(different) > 0.9


def test_all_periods_are_charged_once_and_released_ones_stay() -> None:
    table = visits()
    with session(table) as book, opened(book) as counter:
        (entry,) = book.ledger.entries()
        assert entry is not None
        some = counter.refresh(START + dt.timedelta(4))
        same = counter.refresh(START + dt.timedelta(4))
        assert same.to_arrow() == some.to_arrow()
        assert counter.refresh(START).to_arrow() == some.to_arrow()
        assert len(book.ledger.entries()) == 1
        assert counter.loss.epsilon(1e-7) <= 2.0
        assert counter.released == 4


def test_a_counter_goes_on_after_its_process(tmp_path: Path) -> None:
    table = visits()
    early = table.filter(pc.fill_null(pc.less(table["day"], START + dt.timedelta(4)), fill_value=False))
    places = {"ledger": tmp_path / "a.ledger", "rng": None}
    state = tmp_path / "visits.counter"
    with session(early, **places) as book, opened(book, state=state) as counter:
        first = counter.refresh(START + dt.timedelta(4)).to_arrow()
    assert state.stat().st_mode & 0o777 == 0o600
    with session(table, new_version=True, **places) as book, opened(book, state=state) as counter:
        assert counter.released == 4
        assert len(book.ledger.entries()) == 1
        later = counter.refresh(START + dt.timedelta(DAYS)).to_arrow()
    assert later.slice(0, first.num_rows) == first
    assert later.num_rows == DAYS * 3
    expected = truth(table, DAYS, 3)["n"]
    assert np.abs(later["n"].to_numpy().reshape(-1, 3) - expected).max() < 200
    with session(table, **places) as book, opened(book, state=state) as counter:
        assert counter.refresh(START + dt.timedelta(DAYS)).to_arrow() == later


def test_released_periods_are_never_computed_again(tmp_path: Path) -> None:
    """Rows that come or change later do not show in released sums: the difference would be exact."""
    table = visits()
    places = {"ledger": tmp_path / "a.ledger", "rng": None}
    with session(table, **places) as book, opened(book, state=tmp_path / "s") as counter:
        first = counter.refresh(START + dt.timedelta(6)).to_arrow()
    doubled = pa.concat_tables([table, visits(seed=2)])
    with session(doubled, new_version=True, **places) as book, opened(book, state=tmp_path / "s") as counter:
        assert counter.refresh(START + dt.timedelta(6)).to_arrow() == first


@pytest.mark.parametrize("max_periods", [1, 3])
@pytest.mark.parametrize("units", [4, 10])
def test_one_unit_moves_no_more_than_was_paid_for(units: int, max_periods: int) -> None:
    """The exact sums of every period with and without a unit: few periods, few groups, a bounded change."""
    table = visits(units=units)
    with session(table, epsilon=50) as book, opened(book, max_periods=max_periods, max_groups=1) as made:
        plan = made._plan
        bounds = [measure.sensitivity for measure in plan.priced.measures]
        jobs = [plan.job(step, book) for step in range(DAYS)]

    def exact(rows: pa.Table) -> np.ndarray[Any, Any]:
        with session(rows, threads=1) as book:
            answers = [book.engine.aggregate(job, b"s" * 32) for job in jobs]
            return np.array([[a["m0"].to_numpy(), a["m1"].to_numpy()] for a in answers], dtype=object)

    whole = exact(table)
    most = 0
    for person in range(units):
        change = np.abs(whole - exact(table.filter(pc.not_equal(table["person"], person))))
        assert (change.max(axis=(0, 2)) <= bounds).all()
        assert ((change > 0).sum(axis=2) <= 1).all()
        periods = int((change > 0).any(axis=(1, 2)).sum())
        assert periods <= max_periods
        most = max(most, periods)
    assert most == max_periods


def test_each_row_may_be_a_unit_and_groups_may_be_none() -> None:
    table = visits().drop_columns(["person"])
    with session(table, privacy_unit=sf.ROW) as book:
        query = book.table().agg(n=sf.count())
        counter = book.counter(
            query,
            moment="day",
            start=dt.date(2026, 1, 1),
            every="month",
            steps=2,
            epsilon=1,
            delta=1e-7,
            strategy=BinaryTree(steps=2),
        )
        made = counter.refresh(dt.date(2026, 3, 1)).to_arrow()
    inside = sum(day is not None and START <= day < dt.date(2026, 3, 1) for day in table["day"].to_pylist())
    assert made.column_names == ["period", "n"]
    assert abs(made["n"][1].as_py() - inside) < 60


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"max_periods": None}, ParameterError, "max_periods"),
        ({"max_periods": 0}, ParameterError, "max_periods"),
        ({"epsilon": 0}, ParameterError, "epsilon"),
        ({"delta": 0}, ParameterError, "delta"),
        ({"steps": 0}, ParameterError, "steps"),
        ({"strategy": BinaryTree(steps=5)}, ParameterError, "8 steps"),
        ({"strategy": "BinaryTree"}, ParameterError, "be a Strategy"),
        ({"moment": "place"}, sf.errors.SchemaError, "moment must be a column of type DATE .* got 'place'"),
        (
            {"moment": "nothing"},
            sf.errors.SchemaError,
            "moment must be a column of type DATE .* got 'nothing'",
        ),
        ({"start": dt.datetime(2026, 1, 1)}, sf.errors.SchemaError, "TIMESTAMP where start is a datetime"),
        ({"epsilon": 100.0}, BudgetExceeded, "budget"),
    ],
)
def test_bad_terms_are_refused_and_cost_nothing(given: Any, error: type[Exception], words: str) -> None:
    with session(visits(units=20)) as book:
        with pytest.raises(error, match=words):
            opened(book, **given)
        assert book.ledger.entries() == ()


def test_a_refresh_without_a_date_tells_nothing() -> None:
    with session(visits(units=20)) as book, opened(book) as counter:
        for wrong in ("2026-01-03", None, 3):
            with pytest.raises(ParameterError, match="until must be a date"):
                counter.refresh(wrong)  # type: ignore[arg-type]
        assert counter.released == 0


def test_what_no_counter_can_tell_is_refused() -> None:
    terms: dict[str, Any] = {
        "moment": "day",
        "start": START,
        "every": "day",
        "steps": 3,
        "epsilon": 1.0,
        "delta": 1e-7,
        "max_periods": 1,
    }
    with session(visits(units=20)) as book:
        rows = book.table().group_by("place").agg(sf.count()).options(max_groups_contributed=1)
        with pytest.raises(UnsupportedSql, match="public groups"):
            book.counter(rows, **terms)
        with pytest.raises(UnsupportedSql, match="COUNT and SUM"):
            book.counter(book.table().agg(sf.mean("spent", bounds=(0, 9))), **terms)
        plain = book.table().agg(n=sf.count())
        grouped = book.table().group_by("place", public_groups={"place": GROUPS}).agg(n=sf.count())
        for query, words in (
            (plain.options(epsilon=0.1), "for all its periods"),
            (plain.options(delta=1e-9), "for all its periods"),
            (plain.having("n > 3"), "as they are"),
            (plain.limit(3), "as they are"),
            (book.table().agg(n=sf.count(epsilon=0.5)), "evenly"),
            (grouped.options(max_rows_contributed=3), "bound groups"),
        ):
            with pytest.raises(sf.errors.QueryError, match=words):
                book.counter(query, **terms)
        with pytest.raises(sf.errors.SchemaError, match="column 'spend' does not exist"):
            book.counter(book.table().agg(sf.sum("spend", bounds=(0, 9))), **terms)
        with pytest.raises(ParameterError, match="query must be a PrivateQuery"):
            book.counter("SELECT COUNT(*) FROM data", **terms)  # type: ignore[arg-type]
        assert book.ledger.entries() == ()


def test_a_state_belongs_to_one_counter_at_a_time(tmp_path: Path) -> None:
    state = tmp_path / "s"
    with session(visits(units=20)) as book:
        with opened(book, state=state), pytest.raises(SourceError, match="holds"):
            opened(book, state=state)
        with pytest.raises(LedgerMismatch, match="this counter"):
            opened(book, state=state, steps=7)
        state.write_bytes(b"nothing of the kind")
        with pytest.raises(SourceError, match="cannot be read"):
            opened(book, state=state)
        with pytest.raises(SourceError, match="folder"):
            opened(book, state=tmp_path / "no" / "folder")


def test_a_counter_that_was_closed_tells_nothing_more(tmp_path: Path) -> None:
    """Whoever opened its state since would tell the same period with other noise."""
    with session(visits(), ledger=tmp_path / "l", rng=None) as book:
        first = opened(book, state=tmp_path / "s")
        first.refresh(START + dt.timedelta(2))
        first.close()
        with opened(book, state=tmp_path / "s") as second:
            second.refresh(START + dt.timedelta(3))
            with pytest.raises(SourceError, match="open"):
                first.refresh(START + dt.timedelta(3))


def test_a_forked_child_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with session(visits()) as book, opened(book) as counter:
        mine = os.getpid()
        monkeypatch.setattr(os, "getpid", lambda: mine + 1)
        with pytest.raises(SourceError, match="process"):
            counter.refresh(START + dt.timedelta(3))
        assert counter.released == 0
        monkeypatch.undo()


def test_threads_that_ask_at_once_tell_every_period_once() -> None:
    with session(visits(), epsilon=2000) as book, opened(book, epsilon=1000, max_groups=3) as counter:
        begin, answers = threading.Barrier(4), []

        def ask() -> None:
            begin.wait()
            answers.append(counter.refresh(START + dt.timedelta(DAYS)).to_arrow())

        asking = [threading.Thread(target=ask) for _ in range(4)]
        for each in asking:
            each.start()
        for each in asking:
            each.join()
        assert counter.released == DAYS
    assert all(answer == answers[0] for answer in answers)
    assert len(answers) == 4


def test_a_state_is_locked_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another process tells between reading and locking would be released again with other noise."""
    with session(visits(), ledger=tmp_path / "l", rng=None) as book:
        with opened(book, state=tmp_path / "s") as counter:
            counter.refresh(START + dt.timedelta(2))
        read = np.load

        def load(*args: Any, **kwargs: Any) -> Any:
            with pytest.raises(SourceError, match="another counter holds"):
                opened(book, state=tmp_path / "s")
            return read(*args, **kwargs)

        monkeypatch.setattr(np, "load", load)
        with opened(book, state=tmp_path / "s") as again:
            assert again.released == 2


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"{}"])
def test_a_damaged_state_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s").write_bytes(content)
    with session(visits(), ledger=tmp_path / "l", rng=None) as book:
        for _ in range(2):  # the first leaves no lock behind
            with pytest.raises(SourceError, match="cannot be read"):
                opened(book, state=tmp_path / "s")


@cases("grouped", [True, False])
def test_before_the_first_period_there_are_the_same_columns_and_no_rows(*, grouped: bool) -> None:
    with session(visits()) as opened_session:
        if grouped:
            counter = opened(opened_session)
        else:
            query = opened_session.table().agg(n=sf.count())
            terms: dict[str, Any] = {"moment": "day", "start": START, "every": "day", "steps": 3}
            counter = opened_session.counter(query, epsilon=1, delta=1e-7, max_periods=2, **terms)
        none = counter.refresh(START).to_arrow(intervals=True)
        first = counter.refresh(START + dt.timedelta(1))
        some = first.to_arrow(intervals=True)
    assert len(first.plot(new_axes()).lines) == some.num_rows
    assert none.num_rows == 0
    assert some.num_rows == (3 if grouped else 1)
    assert none.schema == some.schema


def test_a_sum_of_nothing_but_zeros_gets_its_noise_as_any_other() -> None:
    with session(visits(units=10)) as book:
        rows = book.table().group_by("place", public_groups={"place": GROUPS})
        query = rows.agg(none=sf.sum("spent", bounds=(0, 0))).options(max_groups_contributed=2)
        counter = book.counter(
            query, moment="day", start=START, every="day", steps=4, epsilon=2.0, delta=1e-7, max_periods=2
        )
        with counter:
            noise = released(counter.refresh(START + dt.timedelta(4)), "none")
    assert noise.shape == (4, 3)
    assert len(set(noise.ravel().tolist())) > 6


def test_sums_so_far_are_lines_over_the_periods_within_their_intervals() -> None:
    with session(visits()) as opening:
        counter = opened(opening)
        released = counter.refresh(until=START + dt.timedelta(4))
    rows = released.to_arrow(intervals=True, level=0.9).to_pylist()
    ax = released.plot(new_axes(), aggregate="spent", level=0.9)
    for place, group in enumerate(GROUPS):
        own = [row for row in rows if row["place"] == group]
        assert ax.lines[place].get_label() == group
        assert line(ax, place) == ([row["period"] for row in own], [row["spent"] for row in own])
        assert band(ax, place) == [(row["spent_lower"], row["spent_upper"]) for row in own]
    assert released.plot(new_axes(), most=len(GROUPS)).get_title() == ""
    few = released.plot(new_axes(), most=1)
    assert (few.get_ylabel(), len(few.lines)) == ("n, so far", 1)
    assert few.get_title() == f"the first 1 of {len(GROUPS)} groups"
    with pytest.raises(ParameterError, match="aggregate must be one of 'n', 'spent', got 'm'"):
        released.plot(new_axes(), aggregate="m")
