"""A session with a console over sockets: charged once whatever breaks, and a token that nothing shows."""

from __future__ import annotations

import pickle
import shutil
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, EngineError, ParameterError, QueryError, SourceError
from sfumato.session.remote.bearer_token import BearerToken
from sfumato.session.remote.remote_session import RemoteSession
from sfumato.session.remote.transport import Transport
from tests.cases import cases
from tests.server.console.living import broken_way, living_office
from tests.server.console.office import COUNT, Office, make_ledger

SQL = COUNT.replace("0.25", "0.125")


@pytest.fixture(scope="module")
def ledger_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger to copy."""
    folder = tmp_path_factory.mktemp("remote")
    make_ledger(folder)
    return folder


@pytest.fixture
def living(tmp_path: Path, ledger_folder: Path) -> Iterator[tuple[Office, str]]:
    """A console that listens."""
    shutil.copy(ledger_folder / "people.ledger", tmp_path)
    with living_office(tmp_path) as made:
        yield made


def test_the_shape_is_the_sessions(living: tuple[Office, str]) -> None:
    office, address = living
    with sf.connect(address, token=office.tokens["ada"], purpose="a report") as session:
        assert session.privacy_unit == "id"
        assert session.price(SQL)["sentence"] == "Spend 0.125 of your 0.25 epsilon."
        assert "discrete Laplace" in session.explain(SQL)
        assert session.dry_run(SQL, seed=1).simulated
        assert session.remaining().epsilon == 0.25
        before = office.console.ledger.head().charges
        answer = session.sql(SQL)
        value = answer.to_arrow()["n"][0].as_py()
        assert answer.to_pandas(intervals=True).loc[0, "n_lower"] < value
        assert (answer.epsilon, answer.receipts, answer.columns) == (0.125, (before + 1,), ("n",))
        html = answer._repr_html_()
        assert "receipts" in html
        assert "[" in html
        assert session.remaining().epsilon == 0.125
        (found,) = session.history()
        assert (found["id"], found["question"]["purpose"]) == (answer.job, "a report")
        assert session.wait(answer.job) == answer
        assert session.cancel(answer.job)["state"] == "done"
        with pytest.raises(BudgetExceeded, match="nothing was charged") as refused:
            session.sql(SQL.replace("0.125", "0.1875"))
        assert not hasattr(refused.value, "__notes__"), "there is nothing to resume"
        assert refused.value.remaining.answerable_epsilon == 0.125
        with pytest.raises(QueryError, match="WITH DIFFERENTIAL_PRIVACY"):
            session.sql("SELECT age FROM data")
        with pytest.raises(ParameterError, match="there is no such job"):
            session.job("nothing")
        assert session.request_budget(epsilon=1.0, purpose="more")["request"]["purpose"] == "more"
        assert session.releases() == []
        assert office.console.ledger.head().charges == before + 1


def test_a_lost_answer_charges_once(living: tuple[Office, str]) -> None:
    office, address = living
    before = office.console.ledger.head().charges
    with broken_way(int(address.rpartition(":")[2]), answers_lost=2) as port:
        office_at = Transport(f"http://127.0.0.1:{port}", BearerToken.of(office.tokens["ada"]))
        through = _through(office_at, address)
        with RemoteSession(through) as session:
            answer = session.sql(SQL)
    assert office.console.ledger.head().charges == before + 1
    assert answer.receipts == (before + 1,)


def _through(transport: Transport, address: str) -> Transport:
    """Have requests name the console, whichever way they take."""
    once = transport._once

    def named(method: str, path: str, body: bytes | None, sent: dict[str, str]) -> object:
        return once(method, path, body, {**sent, "host": address.partition("//")[2]})

    transport._once = named  # type: ignore[method-assign, assignment]
    return transport


def test_an_interrupt_leaves_the_job_and_says_its_id(
    living: tuple[Office, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    office, address = living
    session = sf.connect(address, token=office.tokens["ada"])
    wait = RemoteSession.wait

    def interrupted(_: RemoteSession, job: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(RemoteSession, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt) as stopped:
        session.sql(SQL)
    monkeypatch.setattr(RemoteSession, "wait", wait)
    (found,) = session.history()
    assert f"session.wait({found['id']!r})" in str(stopped.value)
    assert session.wait(found["id"]).epsilon == 0.125
    session.close()


def test_threads_share_a_session(living: tuple[Office, str]) -> None:
    office, address = living
    with sf.connect(address, token=office.tokens["ada"]) as session, ThreadPoolExecutor(8) as pool:
        asked = [SQL.replace("COUNT(*)", f"COUNT(*) + {n % 3}") for n in range(24)]
        priced = list(pool.map(session.price, asked))
        assert [each["question"]["sql"] for each in priced] == asked, "each got its own answer"


@cases("value", [{1, 2}, 10j, float("nan"), date(2026, 1, 2)])
def test_what_json_cannot_carry_is_refused_before_it_is_sent(value: object) -> None:
    with (
        sf.connect("http://localhost:1", token="a-token") as session,
        pytest.raises(ParameterError, match="what is sent must be truth values, numbers, texts and lists"),
    ):
        session.sql(SQL, params={"x": value})


def test_a_run_that_fails_says_so(living: tuple[Office, str]) -> None:
    office, address = living
    with sf.connect(address, token=office.tokens["ada"]) as session:
        job = session.submit(SQL)
        state = session.cancel(job)["state"]
        if state != "done":
            try:
                assert session.wait(job).epsilon == 0.125  # it had ended by the next step of the grid
            except EngineError as error:
                assert "its charge stays" in str(error)  # noqa: PT017


def test_nothing_shows_the_token(living: tuple[Office, str], tmp_path: Path) -> None:
    _, address = living
    secret = "sfc_" + "a1" * 30
    file = tmp_path / "token"
    file.write_text(f"{secret}\n")
    session = sf.connect(address, token=file)
    with pytest.raises(SourceError, match="token") as refused:
        session.history()
    shown = "".join(map(repr, (session, session._transport, BearerToken.of(secret), refused.value)))
    assert secret not in shown
    assert BearerToken.of(file).header() == f"Bearer {secret}"
    with pytest.raises(ParameterError, match="stay in its process"):
        pickle.dumps(BearerToken.of(secret))
    for bad in ("", "two words", secret + "\u0661", secret + "\r\nx: y"):
        with pytest.raises(ParameterError, match="token must be one that a console printed") as wrong:
            sf.connect(address, token=bad)
        assert secret not in str(wrong.value)
    session.close()


def test_the_environment_has_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_TOKEN", "abc")
    assert BearerToken.of(None).header() == "Bearer abc"
    monkeypatch.delenv("SFUMATO_TOKEN")
    with pytest.raises(ParameterError, match="but there is none"):
        sf.connect("https://console.example")


@cases(
    ("address", "error"),
    [
        ("http://console.example", "begin with https:// for another machine"),
        ("http://127.0.0.1.example", "begin with https://"),
        ("https://", "be https:// and a host"),
        ("https://user:word@console.example", "it has more or less"),
        ("https://console.example/path", "it has more or less"),
        ("https://console.example?x=1", "it has more or less"),
        ("https://console.example:x", "it has more or less"),
    ],
)
def test_addresses_that_are_none(address: str, error: str) -> None:
    with pytest.raises(ParameterError, match=error) as refused:
        sf.connect(address, token="abc")
    assert "word" not in str(refused.value)


@cases(
    ("more", "error"),
    [
        ({"privacy_unit": "id"}, "privacy_unit must be left out for a console"),
        ({"epsilon": 1.0}, "epsilon must be left out"),
        ({"rng": 0}, "rng must be left out"),
        ({"defaults": {"delta": 0}}, "defaults must have epsilon alone"),
        ({"defaults": {"epsilon": -1}}, "epsilon must be positive"),
    ],
)
def test_what_the_console_decides_is_left_out(more: dict[str, object], error: str) -> None:
    with pytest.raises(ParameterError, match=error):
        sf.connect("https://console.example", token="abc", **more)  # type: ignore[call-overload]


def test_data_takes_no_token() -> None:
    with pytest.raises(ParameterError, match="token must come with a console's address"):
        sf.connect("people.parquet", token="abc", privacy_unit="id", epsilon=1.0)  # type: ignore[call-overload]


def test_nobody_there_is_said_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    transport = Transport(f"http://127.0.0.1:{port}", BearerToken.of("abc"), patience=0)
    with pytest.raises(SourceError, match="must answer") as refused:
        RemoteSession(transport).sql(SQL, request="an id")
    assert refused.value.__notes__ == ["to resume without another charge: session.sql(..., request='an id')"]
