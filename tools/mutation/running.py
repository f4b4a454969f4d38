"""What the process with the collected tests does: it runs them in forks of itself, with a mutant in each.

It reads one request a line and writes one event a line. Every fork has limits of time and memory, is told
which tests to run and in which order, and ends at the first that fails.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import inspect
import json
import os
import resource
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import CodeType
from typing import Any, TextIO

import pytest

from tools.measures.source import Module
from tools.mutation.planting import Importer, Loaded, NoSuchFunction, on_reaching

__all__ = ["Collected", "limit_memory", "quiet_hypothesis", "ranked"]

Request = Mapping[str, Any]
Tell = Callable[..., None]

NOT_MENTIONED = 3


class Collected:
    """A pytest plugin that, once tests are collected, runs those that it is asked to.

    Parameters
    ----------
    package : str
        The package whose functions are mutated.
    requests, events : file
        Where requests come from, and where events go.
    changed : Importer, optional
        The module that this process imports mutated.
    """

    def __init__(
        self, package: str, requests: TextIO, events: TextIO, changed: Importer | None = None
    ) -> None:
        self.package, self.requests, self.events, self.changed = package, requests, events, changed
        self.failed: list[pytest.TestReport] = []
        self.broken: list[tuple[str, str]] = []

    def tell(self, **event: object) -> None:
        """Write an event."""
        os.write(self.events.fileno(), (json.dumps(event) + "\n").encode())

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Set hypothesis up when the tests' own settings are there and no test is yet."""
        quiet_hypothesis()
        if self.changed is not None:
            # By now pytest's own finder has come first; it takes the files that pytest is given.
            self.changed.install()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Remember what could not be collected."""
        if report.failed:
            self.broken.append((report.nodeid, str(report.longrepr)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember what failed."""
        if report.failed:
            self.failed.append(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Answer requests until there are no more."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        items = {item.nodeid: item for item in session.items}
        files = {item.nodeid: _collected_as(item) for item in session.items}
        self._settle()
        self.tell(ready=files, broken=self.broken)
        for line in self.requests:
            request = json.loads(line)
            getattr(self, "_" + request["do"])(items, request)
        return True

    def _settle(self) -> None:
        """Find the package's functions, and let no fork copy memory merely to look for garbage in it."""
        gc.unfreeze()
        self.loaded = Loaded(self.package)
        gc.freeze()

    def _trial(self, items: Mapping[str, pytest.Item], request: Request) -> None:
        """Fork, plant the mutant if one is given, and run tests."""
        module = None
        if request.get("module"):
            try:
                if request["module"] not in sys.modules:
                    importlib.import_module(request["module"])
                    self._settle()
                module = sys.modules[request["module"]]
            except ImportError as missing:
                self.tell(end="absent", why=str(missing))
                return
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # from CPython 3.12 on, of other threads; torch's have no work yet
            child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            self.tell(end="exit", status=os.waitstatus_to_exitcode(status))
            return
        try:
            os.setsid()
            limit_memory(request["memory"])
            self.tell(pid=os.getpid())
            on_reaching(lambda: self.tell(reached=True))
            if module is not None:
                source = Module(request["module"], Path(request["path"]))
                self.loaded.exchange(source, request["at"], tuple(request["unit"]), str(module.__file__))
            self._run(ranked(items.values(), request), request)
        except NoSuchFunction:
            self.tell(stop="no such function")
        except BaseException:
            self.tell(stop="error", why=traceback.format_exc())
            os._exit(1)
        os._exit(0)

    def _run(self, items: list[pytest.Item], request: Request) -> None:
        start = time.process_time()
        for at, (item, follower) in enumerate(zip(items, [*items[1:], None], strict=False)):
            if time.process_time() - start > request["budget"]:
                self.tell(stop="budget", left=len(items) - at)
                return
            limit = request["limits"].get(item.nodeid, request["limit"])
            self.tell(test=item.nodeid, limit=limit)
            signal.setitimer(signal.ITIMER_PROF, limit)
            seconds = self._once(item, follower)
            signal.setitimer(signal.ITIMER_PROF, 0)
            if self.failed:
                self.tell(failed=item.nodeid, why=_last_line(self.failed[0]))
                return
            self.tell(passed=item.nodeid, seconds=seconds)

    def _once(self, item: pytest.Item, follower: pytest.Item | None) -> float:
        start = time.process_time()
        self.failed.clear()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=follower)
        return time.process_time() - start

    def _trace(self, items: Mapping[str, pytest.Item], _request: Request) -> None:
        """Run every test once and say which of the package's functions it reaches."""
        met: set[int] = set()
        add = met.add

        def note(frame: Any, _event: str, _argument: object) -> None:
            add(id(frame.f_code))

        runnable = list(items.values())
        for item, follower in zip(runnable, [*runnable[1:], None], strict=False):
            self.loaded.forget()
            met.clear()
            threading.setprofile(note)
            sys.setprofile(note)
            seconds = self._once(item, follower)
            sys.setprofile(None)
            threading.setprofile(None)
            names = self.loaded.names()
            reached = sorted({names[code] for code in met & names.keys()})
            if not self.failed:
                self.tell(traced=item.nodeid, seconds=seconds, reached=reached)
        self.tell(end="traced")


def quiet_hypothesis() -> None:
    """Have hypothesis draw the same examples every time, keep none, and stop at the first that fails."""
    if "hypothesis" in sys.modules or importlib.util.find_spec("hypothesis"):
        hypothesis = importlib.import_module("hypothesis")
        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate, hypothesis.Phase.target)
        hypothesis.settings.register_profile(
            "mutation", hypothesis.settings(), phases=phases, derandomize=True, database=None
        )
        hypothesis.settings.load_profile("mutation")


def ranked(items: Iterable[pytest.Item], request: Request) -> list[pytest.Item]:
    """Return the tests to run, those first that are likeliest to fail and fastest.

    Near files come before distant ones, tests that name what changed before those that do not, and the first
    case of each test before its others. What is known not to reach the mutant is left out.

    Parameters
    ----------
    items : iterable of pytest.Item
        The collected tests.
    request : mapping
        ``files``: the files of tests, nearest first; ``names``: how far each name is from what changed;
        ``known``: seconds, and whether the mutant's function is reached, by test; ``skip``: tests to leave
        out; ``only``: the one test to run, if it is not empty.
    """
    files = {name: at for at, name in enumerate(request["files"])}
    known: Mapping[str, tuple[float, bool]] = request["known"]
    seen: dict[tuple[str, str], int] = {}
    keyed: list[tuple[float, float, int, pytest.Item]] = []
    for item in items:
        file = _collected_as(item)
        case = (file, getattr(item, "originalname", None) or item.name)
        seen[case] = seen.get(case, 0) + 1
        seconds, reaches = known.get(item.nodeid, (0.0, True))
        if file not in files or not reaches or item.nodeid in request["skip"]:
            continue
        if request["only"] and item.nodeid != request["only"]:
            continue
        step = files[file] / 2 + _mention(item, request["names"]) + (seen[case] > 1)
        keyed.append((step if item.nodeid not in known else step / 2, seconds, len(keyed), item))
    return [entry[-1] for entry in sorted(keyed)]


def _collected_as(item: pytest.Item) -> str:
    """Return what pytest was asked to collect: the file below the root, or the module whose doctest it is."""
    if isinstance(item, pytest.DoctestItem):
        return str(getattr(getattr(item.parent, "obj", None), "__name__", item.name))
    return item.path.relative_to(item.config.rootpath).as_posix()


def _mention(item: pytest.Item, names: Mapping[str, int]) -> int:
    if isinstance(item, pytest.DoctestItem):
        mentioned = set(item.name.split("."))
    else:
        function = inspect.unwrap(getattr(item, "obj", None) or len)
        handle = getattr(function, "hypothesis", None)
        code = getattr(getattr(handle, "inner_test", function), "__code__", None)
        mentioned = _names(code) if code is not None else set()
    return min((names[name] for name in mentioned & names.keys()), default=NOT_MENTIONED)


def _names(code: CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def limit_memory(mebibytes: int) -> None:
    """Let this process take so much more memory than it has, and leave no core dump."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    used = Path("/proc/self/statm")
    if used.exists():
        now = int(used.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (now + mebibytes * 2**20, hard))


def _last_line(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message if crash is not None else report.longrepr)
    if crash is None and "\nGot:" in text:
        text = "expected and got:" + text.partition("\nExpected:")[2].replace("Got:", "|")
        return " ".join(text.split())[:200]
    return text.strip().splitlines()[0][:200] if text.strip() else report.when
