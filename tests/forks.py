"""Processes that need not import what they use: they are forked from one that has imported it.

A fork is a process of its own, with its own arguments, folder, environment and standard streams, and a child
of this one; it prints, is killed, ends and costs as an interpreter does that was started for its code. What a
process imports, and how long that takes, is not seen here. Only Linux has what this needs.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Self

import pytest
from _pytest.config import default_plugins

__all__ = ["COMMAND", "Fork", "Forks", "command_forks", "runner_forks", "server_fork", "started"]

SERVER = Path(__file__).with_name("fork_server.py")
BECOME_THE_PARENT = 36
"""Linux's PR_SET_CHILD_SUBREAPER: grandchildren whose parent has ended are this process's children."""

COMMAND = "from sfumato.cli.main import main; main()"
"""Of `command_forks`: what runs ``sfumato``."""


class Fork:
    """A process that was started, with the part of `subprocess.Popen`'s interface that tests use.

    As a context it is killed at the end, if it runs still.

    Parameters
    ----------
    pid : int
    words : sequence of str
        Its command line.
    outputs : sequence of int
        Descriptors from which standard output and standard error are read.
    """

    def __init__(self, pid: int, words: Sequence[str], outputs: Sequence[int]) -> None:
        self.pid, self._words = pid, words
        self.returncode: int | None = None
        self._held = os.pidfd_open(pid)
        self.stdout, self.stderr = (os.fdopen(each, encoding="utf-8") for each in outputs)

    def send_signal(self, number: int) -> None:
        """Send a signal, unless its end was waited for."""
        if self.returncode is None:
            signal.pidfd_send_signal(self._held, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code, once it has ended."""
        if self.returncode is None:
            if not select.select([self._held], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(list(self._words), timeout or 0.0)
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self._held)
        return self.returncode

    def line(self) -> str:
        """Return the next line of standard output; where there is none, what was wrong is raised."""
        line = self.stdout.readline()
        assert line, self.stderr.read()
        return line

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Read both outputs to their end, and wait."""
        with self.stdout, self.stderr, ThreadPoolExecutor(1) as pool:
            errors = pool.submit(self.stderr.read)
            found = self.stdout.read(), errors.result()
        self.wait(timeout)
        return found

    def ended(self) -> subprocess.CompletedProcess[str]:
        """Wait for its end; return how it ended, and what it wrote."""
        out, err = self.communicate()
        return subprocess.CompletedProcess(list(self._words), self.wait(), out, err)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.wait()
        self.stdout.close()
        self.stderr.close()


class Forks:
    """One process with imported modules, which is started when it is needed; a context, which ends it.

    Parameters
    ----------
    imports : str
        Code that imports.
    """

    def __init__(self, imports: str = "") -> None:
        self._imports = imports
        self._socket: socket.socket | None = None

    def start(
        self,
        code: str,
        *words: str,
        imports: str = "",
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        path: Sequence[Path] = (),
        stdout: Path | None = None,
    ) -> Fork:
        """Start code in a fork.

        Parameters
        ----------
        code : str
            What it executes as its main program.
        *words : str
            Its command line, the program's name first.
        imports : str
            Code that imports more, once for all forks.
        folder : path, optional
            Where; here by default.
        environment : mapping, optional
            This process's by default.
        path : sequence of path
            What it looks for modules in before all else.
        stdout : path, optional
            Where standard output goes, in place of a pipe.
        """
        request = {
            "code": code,
            "words": words,
            "imports": f"{self._imports}\n{imports}",
            "folder": str(folder or Path.cwd()),
            "environment": dict(os.environ if environment is None else environment),
            "path": [str(each) for each in path],
        }
        server = self._socket or self._opened()
        err = os.pipe()
        out = (
            os.pipe()
            if stdout is None
            else (os.open(os.devnull, os.O_RDONLY), os.open(stdout, os.O_CREAT | os.O_TRUNC | os.O_WRONLY))
        )
        socket.send_fds(server, [json.dumps(request).encode()], [out[1], err[1]])
        pid = int(server.recv(100) or b"0")
        for writing in (out[1], err[1]):
            os.close(writing)
        assert pid, "the process that is forked has failed"
        return Fork(pid, words, (out[0], err[0]))

    def _opened(self) -> socket.socket:
        """Start the process that is forked; return the socket that it listens to."""
        ctypes.CDLL(None, use_errno=True).prctl(BECOME_THE_PARENT, 1, 0, 0, 0)
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._server = subprocess.Popen(
                [sys.executable, str(SERVER), str(other.fileno())],
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            )
        return self._socket

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            self._socket.close()
            self._server.wait(60)


@functools.cache
def _servers() -> Forks:
    return Forks()


def server_fork(code: str, *words: str, imports: str) -> Fork:
    """Start a service, or another long process of the package, in a fork that has done these imports."""
    return _servers().start(code, "-c", *words, imports=imports)


@contextlib.contextmanager
def started(code: str, *words: str, imports: str, warm: bool = True) -> Iterator[Any]:
    """Run a long process, and kill it at the end: a fork, or an interpreter that imports all by itself."""
    if warm:
        with server_fork(code, *words, imports=imports) as fork:
            yield fork
        return
    command = [sys.executable, "-c", code, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(scope="session", autouse=True)
def _end_servers() -> Iterator[None]:
    yield
    if _servers.cache_info().currsize:
        _servers().__exit__()


@pytest.fixture(scope="session")
def command_forks() -> Iterator[Forks]:
    """Forks that have imported the commands that the tests start as processes."""
    names = ("commands", "sql", "ledger", "dap", "local", "shuffle")
    ours = [f"sfumato.cli.{name}" for name in names]
    # What pyarrow and typer import at their first use, where it is installed.
    with Forks(_imports([*ours, "sfumato.server", "pyarrow.pandas_compat"], ["pandas", "pydantic"])) as forks:
        yield forks


@pytest.fixture(scope="session")
def runner_forks() -> Iterator[Forks]:
    """Forks that have imported pytest, its plugins, and the tools that run tests."""
    names = [
        *(f"_pytest.{name}" for name in default_plugins),
        *(plugin.module for plugin in entry_points(group="pytest11")),
        "hypothesis.internal.conjecture.engine",
        "hypothesis.strategies",
        "tools.mutation.command",
    ]
    with Forks(_imports(names)) as forks:
        yield forks


def _imports(names: Sequence[str], perhaps: Sequence[str] = ()) -> str:
    """Return code that imports modules, and those that may not be installed."""
    sure = [f"import {name}" for name in names]
    return "\n".join([*sure, "import contextlib", *map(_perhaps, perhaps)])


def _perhaps(name: str) -> str:
    return f"with contextlib.suppress(ModuleNotFoundError):\n    import {name}"
