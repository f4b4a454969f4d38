"""Processes that have collected tests, and what became of a mutant when they ran some.

The process that decides never imports the package itself. It forks a host for every set of test files, and
that host forks for every mutant, so that modules and tests are loaded once. A mutant that only a new import
shows has a host of its own.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tools.mutation.collecting import file_of, options
from tools.mutation.planting import Importer, on_reaching
from tools.mutation.running import Collected, limit_memory

__all__ = ["Host", "OutOfTime", "Outcome", "preload"]

START_SECONDS = 120.0
"""Seconds of processor time to collect tests, after which a mutant that needs more counts as endless."""

WALL = 10.0
"""Seconds by the clock for each second of processor time, before a test that waits for ever is ended."""


class OutOfTime(Exception):
    """The time for everything is over."""


@dataclass(slots=True)
class Outcome:
    """What happened when tests ran with a mutant.

    Parameters
    ----------
    end : str
        ``"passed"``, ``"failed"``, ``"timeout"``, ``"crashed"``, ``"absent"`` (a library is not installed) or
        ``"no function"`` (only a new import would show the change).
    test : str
        The test that ended it.
    why : str
        The first line of the failure.
    ran : dict of str to float
        The tests that passed before, with their seconds.
    limit : float
        The limit under which the last test ran.
    reached : bool
        Whether the mutated expression was evaluated.
    left : int
        Tests that were not run because the mutant's own time was over.
    """

    end: str = "passed"
    test: str = ""
    why: str = ""
    ran: dict[str, float] = field(default_factory=dict)
    limit: float = 0.0
    reached: bool = False
    left: int = 0

    def patience(self) -> float:
        """How many seconds by the clock the test that now runs may be silent."""
        return WALL * max(self.limit, 3.0)

    def hear(self, event: Mapping[str, Any]) -> None:
        """Take in what the process with the tests says."""
        match event:
            case {"reached": True}:
                self.reached = True
            case {"test": test, "limit": limit}:
                self.test, self.limit = test, limit
            case {"passed": test, "seconds": seconds}:
                self.ran[test] = seconds
                self.test = ""
            case {"failed": _, "why": why}:
                self.end, self.why = "failed", why
            case {"stop": "budget", "left": left}:
                self.left = left
            case {"stop": "error", "why": why} if not self.test:
                raise RuntimeError(why)
            case {"stop": "no such function"}:
                self.end = "no function"
            case {"end": "absent", "why": why}:
                self.end, self.why = "absent", why
            case {"end": "exit", "status": status} if status:
                self.end = "timeout" if status in {-signal.SIGPROF, -signal.SIGKILL} else "crashed"
                self.why = f"exit status {status}"


def preload(names: Iterable[str]) -> None:
    """Import libraries that many hosts need, once, before any of them is forked."""
    for name in sorted(names):
        with contextlib.suppress(Exception):
            importlib.import_module(name)


class Host:
    """A forked process with collected tests.

    Parameters
    ----------
    package : str
        The package whose functions are mutated.
    targets : sequence of str
        Files of tests, and names of modules whose doctests are tests.
    markers : str
        Which tests: pytest's ``-m``.
    deadline : float
        When to give up, by `time.monotonic`.
    memory : int
        How many mebibytes more a fork may take than it begins with.
    changed : Importer, optional
        The module that this process imports mutated.
    """

    def __init__(
        self,
        package: str,
        targets: Sequence[str],
        markers: str,
        deadline: float,
        *,
        memory: int = 4096,
        changed: Importer | None = None,
    ) -> None:
        self.deadline, self.memory = deadline, memory
        self.folder = Path(tempfile.mkdtemp(prefix="mutation-"))
        self.log = self.folder / "log"
        requests, self._requests = os.pipe()
        self._events, events = os.pipe()
        self._buffer = b""
        self.reached_on_import = False
        self.process = os.fork()
        if not self.process:
            try:
                os.setsid()
                os.close(self._requests)
                os.close(self._events)
                _serve(
                    (package, targets, self._options(markers)),
                    (requests, events),
                    self.folder,
                    changed,
                    memory,
                )
            except BaseException as error:
                (self.folder / "log").write_text(repr(error), encoding="utf-8")
            finally:
                os._exit(1)
        os.close(requests)
        os.close(events)
        self.tests: dict[str, str] = {}
        self.broken: list[tuple[str, str]] = []
        try:
            self.failure: Outcome | None = self._start()
        except BaseException:
            self.close()
            raise

    def _options(self, markers: str) -> list[str]:
        """Return what pytest is given beside the tests."""
        given = [*options(markers), "--capture=no", "--basetemp", str(self.folder / "temporary")]
        # It would be said of what was loaded before the fork.
        return [*given, "-W", "ignore::pytest.PytestAssertRewriteWarning"]

    def _start(self) -> Outcome | None:
        """Wait until tests are collected; return how that went wrong, if it did."""
        outcome = Outcome()
        for event in self._until(START_SECONDS * WALL):
            if "reached" in event:
                self.reached_on_import = True
            if "ready" in event:
                self.tests, self.broken = event["ready"], event["broken"]
                return None
        outcome.reached = self.reached_on_import
        _, status = os.waitpid(self.process, 0)
        code = os.waitstatus_to_exitcode(status)
        self.process = 0
        outcome.end = "timeout" if code in {-signal.SIGPROF, -signal.SIGKILL} else "crashed"
        outcome.test, outcome.why = "collection of the tests", f"exit status {code}: {self.last_words()}"
        return outcome

    def last_words(self) -> str:
        """Return the end of what the process printed."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return " ".join(text[-500:].split())

    def _until(self, seconds: float) -> Iterator[dict[str, Any]]:
        """Yield events until the process ends or is silent for so long; then it is ended."""
        while True:
            wait = min(seconds, self.deadline - time.monotonic())
            ready = wait > 0 and select.select([self._events], [], [], wait)[0]
            if not ready:
                if time.monotonic() >= self.deadline:
                    raise OutOfTime
                os.killpg(self.process, signal.SIGKILL)
            read = os.read(self._events, 65536)
            if not read:
                return
            *lines, self._buffer = (self._buffer + read).split(b"\n")
            for line in lines:
                yield json.loads(line)

    def ask(self, request: Mapping[str, object], seconds: Callable[[], float]) -> Iterator[dict[str, Any]]:
        """Send a request and yield its events, the one with ``end`` last.

        Parameters
        ----------
        request : mapping
            What to do.
        seconds : callable
            How long to wait for the next event before the fork that should send it is ended.
        """
        os.write(self._requests, (json.dumps(request) + "\n").encode())
        child = 0
        while True:
            wait = min(seconds(), self.deadline - time.monotonic(), 2.0**20)
            if b"\n" not in self._buffer and not (
                wait > 0 and select.select([self._events], [], [], wait)[0]
            ):
                if child:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(child, signal.SIGKILL)
                if time.monotonic() >= self.deadline:
                    raise OutOfTime
                continue
            if b"\n" not in self._buffer:
                read = os.read(self._events, 65536)
                if not read:
                    raise RuntimeError(f"the process with the tests ended: {self.last_words()}")
                self._buffer += read
                continue
            line, _, self._buffer = self._buffer.partition(b"\n")
            event = json.loads(line)
            child = event.get("pid", child)
            yield event
            if "end" in event:
                return

    def trial(self, request: Mapping[str, object]) -> Outcome:
        """Run tests in a fork, with a mutant if the request names one."""
        outcome = Outcome(reached=self.reached_on_import)
        for event in self.ask({"do": "trial", "memory": self.memory, **request}, outcome.patience):
            outcome.hear(event)
        return outcome

    def close(self) -> None:
        """End the process."""
        for pipe in (self._requests, self._events):
            os.close(pipe)
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _serve(
    asked_for: tuple[str, Sequence[str], Sequence[str]],
    pipes: tuple[int, int],
    folder: Path,
    changed: Importer | None,
    memory: int,
) -> None:
    """Collect tests in this process and answer requests."""
    package, targets, given = asked_for
    output = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(folder / "hypothesis")
    with os.fdopen(pipes[0], encoding="utf-8") as asked, os.fdopen(pipes[1], "w", encoding="utf-8") as told:
        plugin = Collected(package, asked, told, changed)
        on_reaching(lambda: plugin.tell(reached=True))
        if changed is not None:
            changed.install()
            limit_memory(memory)
            signal.setitimer(signal.ITIMER_PROF, START_SECONDS)
        pytest.main([*map(file_of, targets), *given], plugins=[plugin])
        sys.stdout.flush()
    os._exit(0)
