"""Ctrl-C at every moment: a real signal to a real process, which waits at a named pipe."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.cli.process.interrupts import Interrupts
from sfumato.ledger import Ledger
from tests.forks import COMMAND, Fork, Forks

QUERY = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS n FROM data"
UNIT = ("--privacy-unit", "id", "--epsilon", "2")
ASK = ("sql", "people.parquet", *UNIT)
NOTHING = "sfumato: interrupted; nothing was charged\n"
HEARS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""A shell starts what runs in the background deaf to Ctrl-C, this test run among it."""
WAITS = f"""
{HEARS}
import importlib, json, os, sys
from sfumato.cli.main import main
from sfumato.errors import EngineError
def waits(module, name, fails):
    place = importlib.import_module(module)
    own = getattr(place, name)
    def waiting(*given, **named):
        try:
            open("pipe").read()
        except KeyboardInterrupt:
            if not fails:
                raise
            raise EngineError("the disk must work") from None
        return own(*given, **named)
    setattr(place, name, waiting)
waits(*json.loads(os.environ["PLACE"]))
main()
"""


def interrupted(command: Fork) -> str:
    """Press Ctrl-C; return what the command says of it."""
    command.send_signal(signal.SIGINT)
    done = command.ended()
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def used(command: Fork) -> float:
    fields = Path(f"/proc/{command.pid}/stat").read_text().rpartition(")")[2].split()
    return float(fields[11]) + float(fields[12])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pq.write_table(pa.table({"id": range(100)}), tmp_path / "people.parquet")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def opened() -> int:
    """Return the pipe's writing end, once a process waits at the reading one."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            return os.open("pipe", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads yet
            time.sleep(0.01)
    raise AssertionError("the process never came to the pipe")


def held(forks: Forks, place: tuple[str, str], *words: str, fails: bool = False) -> str:
    """Interrupt a command that waits in front of a function."""
    environment = os.environ | {"PLACE": json.dumps([*place, fails])}
    with forks.start(WAITS, "sfumato", *words, environment=environment) as command:
        writing = opened()
        try:
            return interrupted(command)
        finally:
            os.close(writing)


def test_while_it_imports(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "modules").mkdir()
    (folder / "modules" / "typer.py").write_text("open('pipe').read()\n")
    monkeypatch.setenv("PYTHONPATH", f"modules:{os.environ.get('PYTHONPATH', '')}")
    code = HEARS + "from sfumato.cli.main import main; main()"
    with subprocess.Popen([sys.executable, "-c", code, *ASK], stderr=subprocess.PIPE, text=True) as process:
        writing = opened()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[1] == NOTHING
        os.close(writing)
    assert process.returncode == 130


BEFORE = [("sfumato.cli.sql", "query_text"), ("sfumato.session.answer", "loss_at")]


@pytest.mark.parametrize("place", BEFORE, ids=["reading", "pricing"])
@pytest.mark.sharpest("reading", "pricing")
def test_before_the_charge(command_forks: Forks, folder: Path, place: tuple[str, str]) -> None:
    assert held(command_forks, place, *ASK, "--ledger", "l", QUERY) == NOTHING
    with Ledger.read("l") as ledger:
        assert ledger.entries() == ()


def test_with_json_the_line_is_an_object(command_forks: Forks, folder: Path) -> None:
    found = json.loads(held(command_forks, BEFORE[0], *ASK, QUERY, "--json"))
    assert (found["format"], found["error"], found["exit_code"]) == ("sfumato.error", "Interrupted", 130)
    assert found["message"] == "interrupted; nothing was charged"


STAYS = (
    "sfumato: interrupted; charge 1 stays, (0.5, 0)-DP, for rows may have been read: asking again uses it "
    "if no noise was drawn\n"
)


@pytest.mark.parametrize("fails", [False, True], ids=["interrupt", "another error"])
@pytest.mark.sharpest("interrupt", "another error")
def test_between_charge_and_answer(command_forks: Forks, folder: Path, fails: bool) -> None:
    """A library may make another error of Ctrl-C: the disk is not blamed for it."""
    place = ("sfumato.session.answer", "find_bounds")
    assert held(command_forks, place, *ASK, "--ledger", "l", QUERY, fails=fails) == STAYS
    with Ledger.read("l") as ledger:
        assert [entry.committed for entry in ledger.entries()] == [False]


def test_without_a_ledger_the_charge_is_forgotten(command_forks: Forks, folder: Path) -> None:
    line = held(command_forks, ("sfumato.session.answer", "add_noise"), *ASK, QUERY)
    assert line == "sfumato: interrupted; the charge ends with this command's budget: no --ledger was named\n"


def test_after_the_answer_was_stored(command_forks: Forks, folder: Path) -> None:
    words, place = (*ASK, "--ledger", "l", QUERY), ("sfumato.cli.sql", "write")
    assert "charge 1 stays, (0.5, 0)-DP, with the answer stored" in held(command_forks, place, *words)
    assert held(command_forks, place, *words) == NOTHING, "it was paid for before"


@pytest.mark.parametrize("lock", ["BEGIN IMMEDIATE", "BEGIN"])
@pytest.mark.sharpest("BEGIN IMMEDIATE", "BEGIN")
def test_while_it_waits_for_a_lock(command_forks: Forks, folder: Path, lock: str) -> None:
    """A writer holds up the charge, a reader its commit: either wait is in compiled code."""
    words = (*ASK, "--ledger", "l")
    assert command_forks.start(COMMAND, "sfumato", *words, QUERY).ended().returncode == 0
    asking = command_forks.start(HEARS + COMMAND, "sfumato", *words, "-f", "pipe")
    with asking as command, closing(sqlite3.connect("l", isolation_level=None)) as other:
        writing = opened()
        other.execute(lock)
        other.execute("SELECT * FROM event").fetchall()
        os.write(writing, QUERY.replace("0.5", "0.25").encode())
        os.close(writing)
        before = -1.0
        while (now := used(command)) != before:  # until it only waits
            before = now
            time.sleep(0.3)
        line = interrupted(command)
        other.execute("ROLLBACK")
    unknown = "sfumato: interrupted; it may have been charged: 'sfumato ledger show' says\n"
    assert line in ({NOTHING} if lock == "BEGIN IMMEDIATE" else {NOTHING, unknown})
    with Ledger.read("l") as ledger:
        assert len(ledger.entries()) == 1


def test_a_ledger_that_cannot_be_read_then_leaves_it_open() -> None:
    class Begun:
        written = frozenset({"digest"})

        @classmethod
        def read(cls, address: str, *, lock_timeout: float) -> object:
            raise OSError(address, lock_timeout)

    noted = Interrupts()
    with pytest.raises(KeyboardInterrupt), noted.stating(Begun(), "l"):  # type: ignore[arg-type]
        raise KeyboardInterrupt
    assert noted.line() == "interrupted; it may have been charged: 'sfumato ledger show' says"
