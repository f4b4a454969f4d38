"""Ctrl-C at every moment: a real signal to a real process, which waits at a named pipe."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.cli.process.interrupts import Interrupts
from sfumato.ledger import Ledger

QUERY = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS n FROM data"
UNIT = ("--privacy-unit", "id", "--epsilon", "2")
ASK = ("sql", "people.parquet", *UNIT)
NOTHING = "sfumato: interrupted; nothing was charged\n"
HEARS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""A shell starts what runs in the background deaf to Ctrl-C, this test run among it."""
FORKS = f"""
{HEARS}
import importlib, json, os, sys
import sfumato.cli.commands, sfumato.cli.sql, sfumato.cli.train
from sfumato.cli.main import main
def waits(module, name, fails):
    place = importlib.import_module(module)
    own = getattr(place, name)
    def waiting(*given, **named):
        try:
            open("pipe").read()
        except KeyboardInterrupt:
            if not fails:
                raise
            raise sfumato.errors.EngineError("the disk must work") from None
        return own(*given, **named)
    setattr(place, name, waiting)
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(asked["folder"])
        for number, name in enumerate(("out", "err"), 1):
            os.dup2(os.open(name, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), number)
        if asked["place"]:
            waits(*asked["place"])
        sys.argv = ["sfumato", *asked["words"]]
        try:
            main()
        except SystemExit as ended:
            os._exit(ended.code or 0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Starts commands as processes of their own, without the imports of each."""


class Command:
    """A command in a process of its own."""

    def __init__(self, forks: subprocess.Popen[str], words: tuple[str, ...], place: Any = None) -> None:
        self._forks = forks
        asked = {"folder": str(Path.cwd()), "words": words, "place": place}
        print(json.dumps(asked), file=forks.stdin, flush=True)
        assert forks.stdout is not None
        self.pid = int(forks.stdout.readline())

    def ended(self) -> tuple[int, str, str]:
        assert self._forks.stdout is not None
        code = int(self._forks.stdout.readline())
        return code, Path("out").read_text(), Path("err").read_text()

    def interrupted(self) -> str:
        """Press Ctrl-C; return what the command says of it."""
        os.kill(self.pid, signal.SIGINT)
        code, out, err = self.ended()
        assert (code, out) == (130, ""), err
        assert err.count("\n") == 1, err
        return err

    def used(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return float(fields[11]) + float(fields[12])


@pytest.fixture(scope="module")
def forks() -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", FORKS], stdin=pipe, stdout=pipe, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


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


def held(forks: subprocess.Popen[str], place: tuple[str, str], *words: str, fails: bool = False) -> str:
    """Interrupt a command that waits in front of a function."""
    command = Command(forks, words, (*place, fails))
    writing = opened()
    try:
        return command.interrupted()
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
def test_before_the_charge(forks: Any, folder: Path, place: tuple[str, str]) -> None:
    assert held(forks, place, *ASK, "--ledger", "l", QUERY) == NOTHING
    with Ledger.read("l") as ledger:
        assert ledger.entries() == ()


def test_with_json_the_line_is_an_object(forks: Any, folder: Path) -> None:
    found = json.loads(held(forks, BEFORE[0], *ASK, QUERY, "--json"))
    assert (found["format"], found["error"], found["exit_code"]) == ("sfumato.error", "Interrupted", 130)
    assert found["message"] == "interrupted; nothing was charged"


STAYS = (
    "sfumato: interrupted; charge 1 stays, (0.5, 0)-DP, for rows may have been read: asking again uses it "
    "if no noise was drawn\n"
)


@pytest.mark.parametrize("fails", [False, True], ids=["interrupt", "another error"])
@pytest.mark.sharpest("interrupt", "another error")
def test_between_charge_and_answer(forks: Any, folder: Path, fails: bool) -> None:
    """A library may make another error of Ctrl-C: the disk is not blamed for it."""
    place = ("sfumato.session.answer", "find_bounds")
    assert held(forks, place, *ASK, "--ledger", "l", QUERY, fails=fails) == STAYS
    with Ledger.read("l") as ledger:
        assert [entry.committed for entry in ledger.entries()] == [False]


def test_without_a_ledger_the_charge_is_forgotten(forks: Any, folder: Path) -> None:
    line = held(forks, ("sfumato.session.answer", "add_noise"), *ASK, QUERY)
    assert line == "sfumato: interrupted; the charge ends with this command's budget: no --ledger was named\n"


def test_after_the_answer_was_stored(forks: Any, folder: Path) -> None:
    words, place = (*ASK, "--ledger", "l", QUERY), ("sfumato.cli.sql", "write")
    assert "charge 1 stays, (0.5, 0)-DP, with the answer stored" in held(forks, place, *words)
    assert held(forks, place, *words) == NOTHING, "it was paid for before"


@pytest.mark.parametrize("lock", ["BEGIN IMMEDIATE", "BEGIN"])
@pytest.mark.sharpest("BEGIN IMMEDIATE", "BEGIN")
def test_while_it_waits_for_a_lock(forks: Any, folder: Path, lock: str) -> None:
    """A writer holds up the charge, a reader its commit: either wait is in compiled code."""
    words = (*ASK, "--ledger", "l")
    assert Command(forks, (*words, QUERY)).ended()[0] == 0
    command = Command(forks, (*words, "-f", "pipe"))
    writing = opened()
    with closing(sqlite3.connect("l", isolation_level=None)) as other:
        other.execute(lock)
        other.execute("SELECT * FROM event").fetchall()
        os.write(writing, QUERY.replace("0.5", "0.25").encode())
        os.close(writing)
        before = -1.0
        while (used := command.used()) != before:  # until it only waits
            before = used
            time.sleep(0.3)
        line = command.interrupted()
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
