"""Processes that need not import the library: they are forked from one that has imported it.

`warm_process` is to a script what ``subprocess.Popen([sys.executable, "-c", script, *words])`` is: a process
of its own, that prints, is killed and ends as that one does, and a child of this process. It differs in
that the modules of ``imports`` are there when it begins; where the system is not Linux, it imports them.

``python -m tests.warm_process SOCKET`` is the process that is forked; it ends with the one that started it.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import gc
import json
import os
import platform
import select
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["WarmProcess", "warm_process"]

ROOT = Path(__file__).parents[1]
BECOME_THE_PARENT = 36
"""Linux's PR_SET_CHILD_SUBREAPER: grandchildren whose parent has ended are this process's children."""


class WarmProcess:
    """A running process, with the part of `subprocess.Popen`'s interface that tests use."""

    def __init__(self, script: str, *words: str, imports: str) -> None:
        self.returncode: int | None = None
        pipes = os.pipe(), os.pipe()
        socket.send_fds(
            _forked(), [json.dumps([script, words, imports]).encode()], [pipe[1] for pipe in pipes]
        )
        self.pid = int(_forked().recv(100) or b"0")
        for _, writing in pipes:
            os.close(writing)
        self.stdout, self.stderr = (os.fdopen(pipe[0], encoding="utf-8") for pipe in pipes)
        assert self.pid, "the process that is forked has failed"
        self._held = os.pidfd_open(self.pid)

    def send_signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            signal.pidfd_send_signal(self._held, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._held], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self._held)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Read both outputs to their end, and wait."""
        with self.stdout, self.stderr, ThreadPoolExecutor(1) as pool:
            errors = pool.submit(self.stderr.read)
            found = self.stdout.read(), errors.result()
        self.wait(timeout)
        return found

    def __enter__(self) -> WarmProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stdout.close()
        self.stderr.close()
        self.wait()


def warm_process(script: str, *words: str, imports: str) -> Any:
    """Start a script in a process that has done these imports, or is to do them."""
    if platform.system() == "Linux":
        return WarmProcess(script, *words, imports=imports)
    command = [sys.executable, "-c", script, *words]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@functools.cache
def _forked() -> socket.socket:
    """Start the process that is forked; return the socket that it listens to."""
    ctypes.CDLL(None, use_errno=True).prctl(BECOME_THE_PARENT, 1, 0, 0, 0)
    own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with other:
        command = [sys.executable, "-m", "tests.warm_process", str(other.fileno())]
        running = subprocess.Popen(command, cwd=ROOT, pass_fds=[other.fileno()], stdin=subprocess.DEVNULL)

    @atexit.register
    def end() -> None:
        own.close()
        running.wait(60)

    return own


def _job(listening: socket.socket) -> tuple[str, list[str]] | None:
    """Fork for each request; return the request in the process that is to do it, and None at the end."""
    done: set[str] = set()
    while True:
        message, outputs, _, _ = socket.recv_fds(listening, 1 << 20, 2)
        if not message:
            return None
        script, words, imports = json.loads(message)
        if imports not in done:
            exec(imports, {})
            done.add(imports)
            gc.freeze()
        reading, writing = os.pipe()
        between = os.fork()
        if not between:
            child = os.fork()
            if child:
                os.write(writing, str(child).encode())
                os._exit(0)
            for number, output in enumerate(outputs, 1):
                os.dup2(output, number)
        for held in (writing, *outputs):
            os.close(held)
        if not between:
            os.close(reading)
            listening.close()
            return script, words
        os.waitpid(between, 0)  # from here on the child is the one's who asked
        listening.send(os.read(reading, 100))
        os.close(reading)


def main(number: str) -> None:
    """Run a request's script as the rest of this program."""
    with socket.socket(fileno=int(number)) as listening:
        job = _job(listening)
    if job is not None:
        script, words = job
        sys.argv = ["-c", *words]
        exec(script, {"__name__": "__main__"})


if __name__ == "__main__":
    main(sys.argv[1])
