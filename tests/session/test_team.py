"""Several analysts, a policy, and periods: what a session adds to the ledger's accounts."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sfumato import connect
from sfumato.errors import (
    BudgetExceeded,
    LedgerCorrupt,
    LedgerMismatch,
    LedgerUnavailable,
    OptionError,
    ParameterError,
    SchemaError,
)
from sfumato.ledger import Budget, Ledger, Renewal
from sfumato.queries.plan.policy import PrivacyPolicy
from sfumato.queries.plan.query import Options
from sfumato.session.session import Session
from tests.cases import cases
from tests.postgres import Cluster
from tests.run_time import run_time

if run_time(__name__):
    PEOPLE = pa.table(
        {
            "id": [n // 2 for n in range(400)],
            "state": ["a" if n % 3 else "b" for n in range(400)],
            "day": [None if n == 0 else dt.date(2026, 1 + n % 3, 1 + n % 28) for n in range(400)],
            "moment": [
                dt.datetime(2026, 1 + n % 3, 1, 0, 0, n % 2) - dt.timedelta(seconds=1) for n in range(400)
            ],
        }
    )
COUNT = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={}, delta=0) COUNT(*) AS n FROM data"
POLICY: dict[str, Any] = {
    "privacy_unit_column": "id",
    "max_epsilon_per_query": 0.5,
    "epsilon_budget": 2.0,
    "delta_per_query": 1e-9,
    "delta_budget": 1e-6,
    "max_groups_contributed": 2,
}
GROUPED = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({}) state, COUNT(*) AS n FROM data GROUP BY state"


def open_session(**changes: Any) -> Session:
    usual: dict[str, Any] = {"privacy_unit": "id", "epsilon": 1.0}
    return connect(PEOPLE, **(usual | changes))  # type: ignore[no-any-return]


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "file":
        return tmp_path / "team.ledger"
    return request.getfixturevalue("postgres_url")


def test_analysts_ask_within_their_own_budget_and_the_datasets(place: Any) -> None:
    with open_session(ledger=place) as session:
        session.ledger.grant("ada", Budget.pure(epsilon=0.5))
        session.ledger.grant("bob", Budget.pure(epsilon=1.0))
    with open_session(ledger=place, analyst="ada") as ada, open_session(ledger=place, analyst="bob") as bob:
        first = ada.sql(COUNT.format(0.25))
        assert first.receipt is not None
        assert first.receipt.analyst == "ada"
        again, his = ada.sql(COUNT.format(0.25)), bob.sql(COUNT.format(0.25))
        assert again.replayed
        assert again.record.to_bytes() == first.record.to_bytes()
        assert not his.replayed, "what another analyst asked is charged and drawn anew"
        with pytest.raises(BudgetExceeded, match="of analyst 'ada'"):
            ada.sql(COUNT.format(0.375))
        bob.sql(COUNT.format(0.5))
        with pytest.raises(BudgetExceeded, match="the budget of 1-DP, got"):
            ada.sql(COUNT.format(0.125))
        assert [entry.analyst for entry in bob.account.entries()] == ["bob", "bob"]
    with Ledger.read(place) as seen:
        assert seen.verify().sound
        assert seen.remaining().epsilon == pytest.approx(0.0, abs=1e-6)


def test_an_analysts_builder_plan_and_counter_are_charged_to_them(place: Any) -> None:
    with open_session(ledger=place) as session:
        session.ledger.grant("ada", Budget.pure(epsilon=1.0))
    with open_session(ledger=place, analyst="ada") as ada:
        ada.plan({"n": COUNT.format(0.25)}, epsilon=0.25).release()
    with Ledger.read(place) as seen:
        assert [entry.analyst for entry in seen.entries()] == ["ada"]


def test_a_session_starts_only_where_its_ledger_goes_on(tmp_path: Path) -> None:
    people = pa.table({"id": list(range(100))})
    query = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.25, delta=0) COUNT(*) AS n FROM data"
    usual: dict[str, Any] = {"privacy_unit": "id", "epsilon": 1.0, "ledger": tmp_path / "ledger"}
    with connect(people, **usual) as session:
        shutil.copy(tmp_path / "ledger", tmp_path / "old")
        session.sql(query)
        head = session.ledger.head()
    (tmp_path / "head.json").write_text(head.to_json() + "\n", "utf-8")
    for form in (head, head.to_json(), tmp_path / "head.json", str(tmp_path / "head.json")):
        connect(people, head=form, **usual).close()
    shutil.copy(tmp_path / "old", tmp_path / "ledger")
    with pytest.raises(LedgerCorrupt, match="the ledger was rolled back"):
        connect(people, head=tmp_path / "head.json", **usual)
    wrong: dict[Any, str] = {
        tmp_path / "none": "head must be a file that can be read",
        7: "head must be a ChainHead, its JSON or a file of it",
        "{}": "head",
    }
    for no_head, rule in wrong.items():
        with pytest.raises(ParameterError, match=rule):
            connect(people, head=no_head, **usual)
    with pytest.raises(ParameterError, match="head must come with a ledger"):
        connect(people, head=head, **{**usual, "ledger": None})


def test_who_has_no_account_cannot_connect(tmp_path: Path) -> None:
    with pytest.raises(LedgerMismatch, match="'eve'"):
        open_session(ledger=tmp_path / "l", analyst="eve")
    with pytest.raises(ParameterError, match="analyst must be a printable name"):
        open_session(ledger=tmp_path / "l", analyst="")
    open_session(ledger=tmp_path / "l").close()


@pytest.mark.parametrize("form", ["mapping", "wrapped", "json", "file"])
def test_a_policy_is_read_in_every_form(tmp_path: Path, form: str) -> None:
    wrapped: dict[str, Any] = {"differential_privacy_policy": POLICY}
    (tmp_path / "policy.json").write_text(json.dumps(wrapped), encoding="utf-8")
    forms: dict[str, Any] = {
        "mapping": POLICY,
        "wrapped": wrapped,
        "json": json.dumps(wrapped),
        "file": tmp_path / "policy.json",
    }
    with connect(PEOPLE, policy=forms[form]) as session:
        assert session.privacy_unit == "id"
        assert session.ledger.budget == Budget.approximate(epsilon=2.0, delta=1e-6)
        release = session.sql(GROUPED.format("epsilon=0.5"))
        assert release.delta == 1e-9, "a query that states no delta has the policy's"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("epsilon=0.51", r"epsilon must be at most 0\.5, by the privacy policy, got 0\.51"),
        ("epsilon=0.5, delta=1e-8", "delta must be at most 1e-09"),
        ("epsilon=0.5, max_groups_contributed=3", "max_groups_contributed must be at most 2"),
    ],
)
def test_a_query_beyond_the_policy_is_refused_before_it_is_charged(options: str, message: str) -> None:
    policy = {name: value for name, value in POLICY.items() if name != "max_groups_contributed"}
    if "max_groups" in options:
        policy["max_groups_contributed"] = 2
    else:
        options += ", max_groups_contributed=1"
    with connect(PEOPLE, policy=policy) as session:
        for ask in (session.sql, session.explain):
            with pytest.raises(OptionError, match=message):
                ask(GROUPED.format(options))
        assert session.ledger.entries() == ()


def test_rows_over_all_groups_are_held_to_the_groups_of_the_policy() -> None:
    def options(rows: int | None) -> Options:
        return Options(1.0, 0.0, None, None, None, max_rows_contributed=rows)

    policy = PrivacyPolicy(privacy_unit_column="id", max_groups_contributed=2)
    policy.check(options(None))
    policy.check(options(2))
    with pytest.raises(OptionError, match="must be at most 2, by the privacy policy, got 3"):
        policy.check(options(3))


@cases(
    "broken",
    [
        {"epsilon_budget_remaining": 1.0},
        {"kappa": 1},
        {"privacy_unit_column": ""},
        {"privacy_unit_column": 5},
        {"max_epsilon_per_query": 0},
        {"max_epsilon_per_query": "1"},
        {"max_epsilon_per_query": True},
        {"epsilon_budget": float("inf")},
        {"delta_per_query": 1.0},
        {"delta_budget": -1e-9},
        {"max_groups_contributed": 0},
        {"max_groups_contributed": 1.5},
        {"differential_privacy_policy": {}},
    ],
    ids=str,
)
def test_a_broken_policy_is_refused(broken: dict[str, Any]) -> None:
    for policy in (POLICY | broken, {"differential_privacy_policy": POLICY | broken}):
        with pytest.raises(ParameterError):
            connect(PEOPLE, policy=policy)


@cases(
    "policy",
    ["", "{", "[]", "{}", "no/such/file", 5, '{"privacy_unit_column":"id","privacy_unit_column":"x"}'],
)
def test_what_is_no_policy_is_refused(policy: Any) -> None:
    with pytest.raises(ParameterError, match="policy must"):
        connect(PEOPLE, policy=policy)


def test_a_policy_and_arguments_do_not_contradict_each_other() -> None:
    with pytest.raises(ParameterError, match="budget must be stated once"):
        connect(PEOPLE, policy=POLICY, epsilon=1.0)
    with pytest.raises(ParameterError, match="privacy_unit must be the policy's"):
        connect(PEOPLE, policy=POLICY, privacy_unit="state")
    with pytest.raises(ParameterError, match="privacy_unit must be given"):
        connect(PEOPLE, epsilon=1.0)
    with pytest.raises(ParameterError, match="budget"):
        connect(PEOPLE, policy={"privacy_unit_column": "id"})
    with connect(PEOPLE, policy={"privacy_unit_column": "id"}, privacy_unit="id", rho=1.0) as session:
        assert session.ledger.budget == Budget.zcdp(rho=1.0)


def truth(inside: Callable[[int], bool]) -> int:
    return sum(map(inside, range(PEOPLE.num_rows)))


if run_time(__name__):
    DAYS, MOMENTS = (PEOPLE[name].to_pylist() for name in ("day", "moment"))


@cases(
    ("column", "every", "period", "rows"),
    lambda: [
        ("day", "month", "2026-01", truth(lambda n: DAYS[n] is not None and DAYS[n].month == 1)),
        ("day", "quarter", "2026-Q1", 399),
        ("DAY", "year", "2025", 0),
        ("day", "day", "2026-02-02", truth(lambda n: DAYS[n] == dt.date(2026, 2, 2))),
        ("moment", "month", "2026-01", truth(lambda n: MOMENTS[n].month == 1)),
        ("moment", "year", "2025", truth(lambda n: MOMENTS[n].year == 2025)),
        ("moment", "week", "2026-W01", truth(lambda n: MOMENTS[n].isocalendar()[:2] == (2026, 1))),
    ],
)
def test_an_answer_is_about_the_rows_of_its_period(column: str, every: str, period: str, rows: int) -> None:
    renewal = Renewal(every=every, column=column)
    with connect(PEOPLE, privacy_unit="id", epsilon=1e4, renewal=renewal, period=period) as session:
        release = session.sql(COUNT.format(1e4).replace("(*", "(*, contribution_bounds_per_group => (0, 9)"))
        assert release.to_arrow()["n"].to_pylist() == [rows]
        assert release.privacy_unit == f"(id, {every} of {column})"
        assert release.receipt is not None
        assert release.receipt.period == period
        assert "lifetime" in str(release.receipt) or "sum so far" in str(release.receipt)


def test_rows_outside_of_the_period_are_read_by_no_form_of_query() -> None:
    """The period is empty, so whatever is asked counts nothing."""
    renewal = Renewal(every="year", column="day")
    query = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1e4, delta=0) COUNT(*) AS n FROM {}"
    with connect(PEOPLE, privacy_unit="id", epsilon=1e5, renewal=renewal, period="1999") as session:
        for source in (
            "data",
            "(SELECT * FROM data)",
            "(SELECT id FROM data UNION ALL SELECT id FROM data)",
            "(SELECT id, COUNT(*) AS n FROM data GROUP BY id)",
            "data AS x JOIN data AS y ON x.id = y.id",
            "(SELECT id, ROW_NUMBER() OVER (PARTITION BY id ORDER BY state) AS r FROM data)",
        ):
            assert session.sql(query.format(source)).to_arrow()["n"].to_pylist() == [0], source


def test_each_period_has_its_own_budget_and_its_own_answers(place: Any) -> None:
    renewal = Renewal(every="month", column="day")
    answers = []
    for period in ("2026-01", "2026-02"):
        with open_session(ledger=place, renewal=renewal, period=period) as session:
            release = session.sql(COUNT.format(0.75))
            answers.append(release)
            assert session.sql(COUNT.format(0.75)).replayed
            with pytest.raises(BudgetExceeded, match=f"for {period}"):
                session.sql(COUNT.format(0.5))
            assert session.account.remaining().epsilon == pytest.approx(0.25)
    assert not any(release.replayed for release in answers)
    assert answers[1].receipt is not None
    assert answers[1].receipt.lifetime is not None
    assert answers[1].receipt.lifetime.epsilon == pytest.approx(1.5)


@cases(
    ("changes", "error"),
    [
        ({"period": "2026-01"}, ParameterError),
        ({"renewal": Renewal(every="month", column="day")}, ParameterError),
        ({"renewal": Renewal(every="month", column="day"), "period": "2026"}, ParameterError),
        ({"renewal": Renewal(every="month", column="dya"), "period": "2026-01"}, SchemaError),
        ({"renewal": Renewal(every="month", column="state"), "period": "2026-01"}, SchemaError),
        ({"renewal": "month", "period": "2026-01"}, ParameterError),
    ],
)
def test_a_period_that_cannot_be_told_is_refused(changes: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        open_session(**changes)


@pytest.mark.postgres
def test_a_charge_whose_draw_cannot_be_recorded_stays_and_is_used(
    postgres: Cluster, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger's server lets nobody in between charge and answer: the error says what was charged."""
    name = postgres_url.rpartition("/")[2]
    with open_session(ledger=postgres_url) as session:
        aggregate = type(session._engine).aggregate

        def while_the_ledger_is_lost(*arguments: Any) -> Any:
            postgres.run(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            postgres.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
            return aggregate(*arguments)

        with monkeypatch.context() as patched:
            patched.setattr(type(session._engine), "aggregate", while_the_ledger_is_lost)
            with pytest.raises(LedgerUnavailable, match="charge 1 stays, and no noise was drawn"):
                session.sql(COUNT.format(0.25))
        with pytest.raises(LedgerUnavailable, match="nothing was charged"):
            session.sql(COUNT.format(0.25))
        postgres.run(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        again = session.sql(COUNT.format(0.25))
        assert not again.replayed
        assert session.sql(COUNT.format(0.25)).record.to_bytes() == again.record.to_bytes()
        assert [entry.committed for entry in session.ledger.entries()] == [True]
        assert session.ledger.verify().sound
