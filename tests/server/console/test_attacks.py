"""Consoles as processes: races for the last epsilon, kills, slow and greedy clients, and what they print."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from sfumato.ledger import Ledger
from sfumato.queries.release.table import TableRelease
from tests.postgres import Cluster
from tests.server.console.processes import (
    ANALYSTS,
    STAGES,
    Running,
    Visitor,
    prepare,
    question,
    run,
    running,
)


def raced(consoles: Sequence[Running], tokens: Sequence[dict[str, str]], each: int) -> list[str]:
    """Two browsers and four programs ask at once; return how each question ended."""
    visitors = [
        Visitor(consoles[n % len(consoles)], tokens[n % len(consoles)][ANALYSTS[n % 4]], browser=n < 2)
        for n in range(6)
    ]

    def ask(number: int) -> list[str]:
        paths = []
        for n in range(each):
            asked = question(0.25, 18 + number * each + n, "secretpurpose")
            sent = run(visitors[number], asked, f"{number}-{n}")
            assert sent.status == 303, sent.text
            paths.append(sent.headers["location"])
        return [visitors[number].ended(path) for path in paths]

    with ThreadPoolExecutor(len(visitors)) as pool:
        return [state for states in pool.map(ask, range(len(visitors))) for state in states]


def check(ledger: str, states: Sequence[str]) -> None:
    assert set(states) == {"done", "refused"}, "each got an answer or the refusal"
    with Ledger.read(ledger) as book:
        entries = book.entries()
        assert book.verify().sound
    assert [entry.epsilon for entry in entries] == [0.25] * 4, "all of it was spent, and no more"
    assert states.count("done") == 4


def test_browsers_and_programs_race_for_the_last_epsilon(tmp_path: Path) -> None:
    config, tokens = prepare(tmp_path)
    with running(config) as console:
        states = raced([console], [tokens], 1)
        printed = console.printed()
    check(str(tmp_path / "people.ledger"), states)
    assert printed == "", "nothing of what was asked, by whom or how it ended"


@pytest.mark.postgres
def test_two_consoles_race_for_the_last_epsilon_of_one_ledger(postgres: Cluster, tmp_path: Path) -> None:
    ledger = postgres.database()
    places = [prepare(tmp_path / name, ledger) for name in ("a", "b")]
    with ExitStack() as stack:
        consoles = [stack.enter_context(running(config)) for config, _ in places]
        states = raced(consoles, [tokens for _, tokens in places], 2)
        assert [console.printed() for console in consoles] == ["", ""]
    check(ledger, states)


def killed_and_asked_again(folder: Path, stage: str, ledger: str = "people.ledger") -> None:
    """Kill a console at a stage of a question: it is charged once, and the next one answers or says so."""
    config, tokens = prepare(folder, ledger)
    asked = question(0.25, 30)
    with running(config, stage) as console:
        before = Visitor(console, tokens["ada"], browser=True)
        with suppress(http.client.HTTPException, OSError):
            run(Visitor(console, tokens["ada"]), asked, "one")
        assert console.process.wait(60) == -9
    with running(config) as console:
        left = console.ask("GET", "/ask", cookie=before.cookie)
        assert (left.status, left.headers["location"]) == (303, "/sign-in"), "sessions are gone"
        again = Visitor(console, tokens["ada"])
        sent = run(again, asked, "one")
        assert sent.status == 303
        path = sent.headers["location"]
        state = again.ended(path)
        assert run(again, asked, "one").headers["location"] == path
        page = again.get(path).text
        file = again.console.ask(
            "GET", f"{path.partition('?')[0]}/csv", authorization=f"Bearer {again.token}"
        )
        drawn = stage == "after the draw was written"
        assert console.printed() == ("a run failed with LedgerMismatch\n" if drawn else "")
    with Ledger.read(ledger if "://" in ledger else folder / ledger) as book:
        (entry,) = book.entries()
        assert book.verify().sound
        if drawn:
            assert state == "failed"
            assert "its charge stays" in page
            return
        release = book.release(entry.sequence)
    assert state == "done"
    assert isinstance(release, TableRelease)
    committed = release.to_arrow()["n"][0].as_py()
    assert file.text.splitlines()[1].split(",")[0] == str(committed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("stage", STAGES)
def test_a_console_that_is_killed_charges_once_and_answers_after_all(tmp_path: Path, stage: str) -> None:
    killed_and_asked_again(tmp_path, stage)


@pytest.mark.postgres
@pytest.mark.parametrize("stage", ["after the charge", "after the draw was written"])
def test_so_does_one_whose_ledger_is_on_a_server(postgres: Cluster, tmp_path: Path, stage: str) -> None:
    killed_and_asked_again(tmp_path, stage, postgres.database())


def opened(console: Running, data: bytes, source: str = "127.0.0.1") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", console.port), timeout=60, source_address=(source, 0))
    made.sendall(data)
    return made


def read(connection: socket.socket) -> bytes:
    """Return all that comes until the connection ends."""
    found = b""
    try:
        while piece := connection.recv(1 << 16):
            found += piece
    except ConnectionResetError:
        pass
    return found


@pytest.mark.exhaustive
def test_slow_and_greedy_clients_hold_up_nobody_else(tmp_path: Path) -> None:
    config, tokens = prepare(tmp_path)
    with running(config) as console, ExitStack() as stack:
        head = (
            f"POST /ask/price HTTP/1.1\r\nHost: localhost:{console.port}\r\n"
            f"Authorization: Bearer {tokens['ada']}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        ).encode()
        too_long = head + b"Content-Length: 1048577\r\n\r\n"
        piece = b"20000\r\n" + b"x" * 0x20000 + b"\r\n"
        for data in (too_long, head + b"Transfer-Encoding: chunked\r\n\r\n" + piece * 9):
            with opened(console, data) as greedy:
                assert read(greedy).startswith(b"HTTP/1.1 413 ")
        slow = [opened(console, head + b"Content-Length: 9\r\n\r\nsql") for _ in range(40)]
        heads = [opened(console, head[:60]) for _ in range(300)]
        for connection in (*slow, *heads):
            stack.enter_context(connection)
        page = console.ask("GET", "/ask", source="127.0.0.2", authorization=f"Bearer {tokens['bob']}")
        assert page.status == 200
        assert all(read(each).startswith(b"HTTP/1.1 503 ") for each in heads[-80:]), "too many of one address"
        assert {read(each)[:12] for each in slow} == {b"HTTP/1.1 408"}
        assert console.ask("GET", "/ask", authorization=f"Bearer {tokens['bob']}").status == 200
        assert console.printed() == ""
    with Ledger.read(tmp_path / "people.ledger") as book:
        assert book.entries() == ()
