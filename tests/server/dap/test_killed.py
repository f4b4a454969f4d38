"""Leader and helper that are killed: nothing is lost, nothing counts twice, and answers stay the same."""

from __future__ import annotations

import contextlib
import gc
import random
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import SourceError
from sfumato.federated.dap.collection_messages import Interval
from sfumato.federated.dap.report_sharding import sharded_reports
from sfumato.federated.dap.task import base64url
from sfumato.federated.dap.unsharding import CollectedBatch
from sfumato.federated.dap.version import Role
from sfumato.server.dap.aggregator_store import AggregatorStore
from sfumato.server.dap.dap_client import collect_batch
from sfumato.server.dap.http_peer import HttpPeer
from tests.server.dap.setting import HOUR, Pair, by_leader, parties, process
from tests.server.setting import memory_folder

VALUES = (1, 0, 1, 1, 0, 1)


class Killed(BaseException):
    """The process ends here."""


class Killer:
    """Ends both aggregators at one statement of theirs, before it or after it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, self.after = -1, False
        self.exact = AggregatorStore.execute
        killer = self

        def execute(store: AggregatorStore, statement: str, values: tuple[Any, ...] = ()) -> Any:
            killer.left -= 1
            if killer.left == 0 and not killer.after:
                raise Killed
            found = killer.exact(store, statement, values)
            if killer.left == 0:
                raise Killed
            return found

        monkeypatch.setattr(AggregatorStore, "execute", execute)


def lived(folder: Path, killer: Killer, at: int, made: Any, interval: Interval | None) -> bool:
    """Run a task, killed at one statement, to its end; return whether it was killed."""
    pair = Pair(folder, made)
    reports = pair.reports(VALUES)
    steps: list[Callable[[], Any]] = [
        partial(pair.upload, reports[:4]),
        partial(Pair.run, pair),
        partial(pair.upload, reports[4:]),
        partial(pair.collection, 1, interval),
        partial(Pair.run, pair),
        partial(pair.collection, 1, method="GET"),
    ]
    killer.left, killed, answer = at, False, None
    while steps:
        ended = True
        try:
            answer = steps[0]()
        except Killed:
            ended = False
        if ended:
            del steps[0]
            continue
        killed = True
        gc.collect()  # the exception's frames hold cursors, which would hold the file
        pair.close()
        pair.open()
    killer.left = -1
    assert answer == pair.collection(1, interval)
    found = pair.collect(1, interval)
    assert (found.result, found.reports) == (sum(VALUES), len(VALUES))
    pair.close()
    return killed


def killed_at(folder: Path, monkeypatch: pytest.MonkeyPatch, stride: int) -> int:
    killer, count = Killer(monkeypatch), 0
    for make, interval in ((parties, Interval(HOUR, 1)), (by_leader, None)):
        for after in (False, True):
            killer.after, at, killed = after, 1, True
            while killed:
                where = folder / f"{make.__name__}-{after}-{at}"
                killed = lived(where, killer, at, make(len(VALUES)), interval)
                at, count = at + stride, count + 1
    return count


def test_killed_at_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    with memory_folder() as folder:
        assert killed_at(folder, monkeypatch, 17) > 12


@pytest.mark.exhaustive
def test_killed_at_every_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    # To be killed after a statement is to be killed before the next one: so these are all.
    with memory_folder() as folder:
        assert killed_at(folder, monkeypatch, 2) > 75


class Processes:
    """Both real processes, of which one at a time is killed and started again."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack, chance: random.Random) -> None:
        self.folder, self.stack, self.chance = folder, stack, chance
        self.running: dict[str, Any] = {}
        self.kills = 0
        for name in ("helper", "leader"):
            self.start(name)

    def start(self, name: str) -> None:
        entered = process(self.folder / f"{name}.json", self.folder / name)
        self.running[name] = self.stack.enter_context(entered)

    def kill(self) -> None:
        name = self.chance.choice(("leader", "helper"))
        time.sleep(self.chance.uniform(0.0, 0.05))
        self.running[name].kill()
        self.running[name].wait(60)
        self.kills += 1
        self.start(name)


def free_ports() -> Iterator[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        ports = [one.getsockname()[1] for one in sockets]
    yield from ports


@pytest.mark.exhaustive
def test_processes_that_are_killed_at_random(tmp_path: Path) -> None:
    chance = random.Random(22)
    leader, helper = (f"http://127.0.0.1:{port}" for port in free_ports())
    made = parties(200, leader=leader, helper=helper, time_precision=10**8)
    for role, party in made.items():
        party.to_file(tmp_path / f"{role.name.lower()}.json")
    task = made[Role.LEADER].task
    unit = int(time.time()) // task.time_precision
    values = [chance.randrange(2) for _ in range(200)]
    keys = [made[role].key.config for role in (Role.LEADER, Role.HELPER)]
    reports = sharded_reports(task, values, unit, *keys)
    path = f"tasks/{base64url(task.task_id)}/reports"
    with contextlib.ExitStack() as stack:
        running = Processes(tmp_path, stack, chance)
        peer = stack.enter_context(HttpPeer(leader))
        while reports:
            group = reports[: chance.randrange(1, 40)]
            with contextlib.suppress(SourceError):
                body = b"".join(one.to_bytes() for one in group)
                assert peer.ask("POST", path, body, "application/dap-upload-req") == (200, b"")
                reports = reports[len(group) :]
            if running.kills < 6:
                running.kill()
        results: list[CollectedBatch] = []
        while len(results) < 3:
            with contextlib.suppress(SourceError):
                results.append(collect_batch(made[Role.COLLECTOR], Interval(unit, 1), seconds=30))
            running.kill()
    assert {(one.result, one.reports) for one in results} == {(sum(values), 200)}
