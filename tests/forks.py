"""Processes that need not import what they use: one interpreter imports it once, and forks for each.

Each fork is a process of its own, with its own arguments, folder, environment and standard streams, and ends
as an interpreter does. What a process imports, and how long that takes, is not seen here.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Self

import pytest
from _pytest.config import default_plugins

__all__ = ["COMMAND", "Fork", "Forks", "command_forks", "runner_forks"]

SERVER = """
import contextlib, gc, importlib, json, os, sys
for name in sys.argv[1:]:
    with contextlib.suppress(ModuleNotFoundError) if name.endswith("?") else contextlib.nullcontext():
        importlib.import_module(name.rstrip("?"))
gc.freeze()
asked = None
for line in iter(sys.stdin.readline, ""):
    request = json.loads(line)
    if "wait" in request:
        print(os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1]), flush=True)
        continue
    child = os.fork()
    if not child:
        asked = request
        break
    print(child, flush=True)
if asked is not None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in enumerate(asked["streams"], 1):
        os.dup2(os.open(name, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), number)
    sys.stdin = open(0, closefd=False)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    sys.path[:0] = asked["path"]
    sys.argv = asked["words"]
    exec(asked["code"], {"__name__": "__main__"})
"""


COMMAND = "from sfumato.cli.main import main; main()"
"""Of `command_forks`: what runs ``sfumato``."""


class Fork:
    """A process that was started: a context, which kills it if it runs still.

    Parameters
    ----------
    server : subprocess.Popen
        Whose fork it is.
    words : sequence of str
        Its command line.
    streams : sequence of path
        Where standard output and standard error go; where the first is a named pipe, it is read at once.
    """

    def __init__(self, server: subprocess.Popen[str], words: Sequence[str], streams: Sequence[Path]) -> None:
        self._server, self._words, self._streams = server, words, streams
        assert server.stdout is not None
        self.pid = int(server.stdout.readline())
        self.returncode: int | None = None
        self.stdout = streams[0].open(encoding="utf-8") if streams[0].is_fifo() else None

    def send_signal(self, number: int) -> None:
        """Send a signal, unless its end was waited for."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def wait(self) -> int:
        """Return its exit code, once it has ended."""
        if self.returncode is None:
            assert self._server.stdout is not None
            print(json.dumps({"wait": self.pid}), file=self._server.stdin, flush=True)
            self.returncode = int(self._server.stdout.readline())
        return self.returncode

    def line(self) -> str:
        """Return the next line of a piped standard output; where there is none, what was wrong is raised."""
        assert self.stdout is not None
        line = self.stdout.readline()
        assert line, self._streams[1].read_text(encoding="utf-8")
        return line

    def ended(self) -> subprocess.CompletedProcess[str]:
        """Wait for its end; return how it ended, and what it wrote."""
        out = "" if self.stdout is None else self.stdout.read()
        code = self.wait()
        if self._streams[0].is_file():
            out = self._streams[0].read_text(encoding="utf-8")
        err = self._streams[1].read_text(encoding="utf-8")
        return subprocess.CompletedProcess(list(self._words), code, out, err)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.send_signal(signal.SIGKILL)
        self.wait()
        if self.stdout is not None:
            self.stdout.close()


class Forks:
    """One interpreter with imported modules; a context, which ends it.

    Parameters
    ----------
    *modules : str
        What it imports; what may not be installed has a question mark behind it.
    """

    def __init__(self, *modules: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="forks-")
        self._server = subprocess.Popen(
            [sys.executable, "-c", SERVER, *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self._started = 0

    def start(
        self,
        code: str,
        *words: str,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        path: Sequence[Path] = (),
        stdout: Path | None = None,
        piped: bool = False,
    ) -> Fork:
        """Start code in a fork.

        Parameters
        ----------
        code : str
            What it executes as its main program.
        *words : str
            Its command line, the program's name first.
        folder : path, optional
            Where; here by default.
        environment : mapping, optional
            This process's by default.
        path : sequence of path
            What it looks for modules in before all else.
        stdout : path, optional
            Where standard output goes; by default into a file of its own.
        piped : bool
            Whether standard output is read while it runs.
        """
        self._started += 1
        own = [Path(self._folder.name) / f"{self._started}.{name}" for name in ("out", "err")]
        streams = [stdout or own[0], own[1]]
        if piped:
            os.mkfifo(streams[0])
        asked = {
            "code": code,
            "words": words,
            "folder": str(folder or Path.cwd()),
            "environment": dict(os.environ if environment is None else environment),
            "path": [str(each) for each in path],
            "streams": [str(each) for each in streams],
        }
        print(json.dumps(asked), file=self._server.stdin, flush=True)
        return Fork(self._server, words, streams)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._server as server:
            assert server.stdin is not None
            server.stdin.close()
        self._folder.cleanup()


@pytest.fixture(scope="session")
def command_forks() -> Iterator[Forks]:
    """Forks that have imported the commands that the tests start as processes."""
    names = ("commands", "sql", "ledger", "dap", "local", "shuffle")
    ours = [f"sfumato.cli.{name}" for name in names]
    # What pyarrow and typer import at their first use, where it is installed.
    with Forks(*ours, "sfumato.server", "pandas?", "pyarrow.pandas_compat", "pydantic?") as forks:
        yield forks


@pytest.fixture(scope="session")
def runner_forks() -> Iterator[Forks]:
    """Forks that have imported pytest, its plugins, and the tools that run tests."""
    with Forks(
        *(f"_pytest.{name}" for name in default_plugins),
        *(plugin.module for plugin in entry_points(group="pytest11")),
        "hypothesis.internal.conjecture.engine",
        "hypothesis.strategies",
        "tools.mutation.command",
    ) as forks:
        yield forks
