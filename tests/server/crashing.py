"""A collector that is killed again and again, in processes of its own, beside a list of what it acknowledged.

`main` takes FOLDER, MODE, KIND, ROUNDS, SEED and STRIDE, a kind being ``shuffler`` or ``local``; prints
``whole`` and figures, or fails. In the mode ``calls`` the process kills itself at its first step, at its
second, and so on: before and after each statement of a transaction and each call that touches a file. In
the mode ``times`` it is killed at random.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from sfumato import local
from sfumato.local.device import PublicQuestion
from sfumato.server.collector import Collector
from sfumato.server.local_collector import LocalCollector
from sfumato.server.shuffler import Shuffler
from tests.server.setting import CLIENTS, SHUFFLER, collection, envelope, values_in

READY = b"\xff" * 4
SIZE = 5
STEPS = {"execute", "open", "mkdir", "write", "flush", "fsync", "close", "replace"}
MADE = collection(SIZE)
COUNTED: Any = MADE.protocol
ASKED = PublicQuestion(randomizer=COUNTED.device)


class Sealed:
    """A shuffler."""

    suffix = ".mixed"

    def opened(self, folder: Path) -> Collector:
        return Shuffler(MADE.device, SHUFFLER, folder)

    def sent(self, client: int) -> bytes:
        return envelope(MADE, client)

    def values(self, path: Path) -> Counter[int]:
        return values_in(MADE, path.read_bytes())


class Plain:
    """A collector of plain local reports."""

    suffix = ".parquet"

    def opened(self, folder: Path) -> Collector:
        return LocalCollector(ASKED, folder, SIZE)

    def sent(self, client: int) -> bytes:
        return ASKED.submission(client, client.to_bytes(16, "big"))

    def values(self, path: Path) -> Counter[int]:
        counted = local.aggregate_parquet(COUNTED, [path], "report", processes=1)
        raw = counted.estimate().raw * counted.accepted
        return Counter({client: round(float(raw[client])) for client in range(CLIENTS) if raw[client] > 0.5})


KINDS: dict[str, Sealed | Plain] = {"shuffler": Sealed(), "local": Plain()}


class Oracle:
    """What was sent and acknowledged, and the batches that were seen."""

    def __init__(self, folder: Path, seed: int, kind: Sealed | Plain) -> None:
        self.folder, self.random, self.kind = folder, random.Random(seed), kind
        self.envelopes: list[bytes] = []
        self.acknowledged: set[int] = set()
        self.seen: dict[str, bytes] = {}
        self.released: Counter[int] = Counter()

    def due(self) -> list[int]:
        """Clients who send next: those who have no answer, new ones, and some who were answered before."""
        waiting = [client for client in range(len(self.envelopes)) if client not in self.acknowledged]
        for _ in range(self.random.randrange(1, 2 * SIZE)):
            waiting.append(len(self.envelopes))
            self.envelopes.append(self.kind.sent(len(self.envelopes)))
        again = self.random.sample(sorted(self.acknowledged), min(2, len(self.acknowledged)))
        self.random.shuffle(waiting)
        return waiting + again

    def look(self) -> None:
        """Check what was released so far: whole batches, that never change, of reports that were sent."""
        paths = sorted((self.folder / "batches").glob(f"*{self.kind.suffix}"))
        for path in paths:
            data = path.read_bytes()
            if path.name not in self.seen:
                values = self.kind.values(path)
                assert values.total() == SIZE
                self.released += values
            assert (
                self.seen.setdefault(path.name, hashlib.sha256(data).digest())
                == hashlib.sha256(data).digest()
            )
        assert list(self.seen) == [path.name for path in paths]
        assert max(self.released.values(), default=1) == 1, "a report is in two batches"
        assert set(self.released) <= set(range(len(self.envelopes)))

    def finish(self) -> None:
        """Send all that was not answered, fill the last batch, and look for every report."""
        with self.kind.opened(self.folder) as shuffler:
            rest = [client for client in range(len(self.envelopes)) if client not in self.acknowledged]
            assert all(shuffler.take([self.envelopes[client] for client in rest]))
            while len(self.envelopes) % SIZE:
                self.envelopes.append(self.kind.sent(len(self.envelopes)))
                assert shuffler.take(self.envelopes[-1:]) == [True]
        self.look()
        assert self.released == Counter(range(len(self.envelopes))), "a report is lost, or there twice"
        assert list(self.seen) == [
            f"batch-{number:06d}{self.kind.suffix}" for number in range(1, len(self.seen) + 1)
        ]
        assert not list((self.folder / "batches").glob("*.part"))


def work(oracle: Oracle, due: list[int], pipe: int, last_call: int) -> None:
    """What the killed process does: take reports in groups, and tell which were taken."""
    calls = 0

    def count(_frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        if event in ("c_call", "c_return") and argument.__name__ in STEPS:
            calls += 1
            if calls == last_call:
                os.kill(os.getpid(), signal.SIGKILL)

    if last_call:
        sys.setprofile(count)
    shuffler = oracle.kind.opened(oracle.folder)
    os.write(pipe, READY)
    while due:
        group, due = due[:3], due[3:]
        assert shuffler.take([oracle.envelopes[client] for client in group]) == [True] * len(group)
        os.write(pipe, b"".join(client.to_bytes(4, "big") for client in group))
    sys.setprofile(None)
    os.write(pipe, b"done")


def killed(oracle: Oracle, last_call: int) -> bool:
    """Run `work` in a process that is killed, and note what it told; say whether it came to its end."""
    due = oracle.due()
    answers = oracle.random.randrange(0, max(1, len(due) - 3))
    read, write = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.close(read)
            work(oracle, due, write, last_call)
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    told = b""
    while piece := os.read(read, 1 << 16):
        told += piece
        if not last_call and len(told) >= 4 * answers:
            time.sleep(oracle.random.uniform(0.0, 0.002))
            os.kill(child, signal.SIGKILL)
    os.close(read)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the shuffler failed"
    ended = told.endswith(b"done")
    whole = told.removesuffix(b"done")
    whole = whole.removeprefix(READY)
    oracle.acknowledged |= {int.from_bytes(whole[at : at + 4], "big") for at in range(0, len(whole), 4)}
    oracle.look()
    return ended


def main(folder: str, mode: str, kind: str, *numbers: str) -> None:
    rounds, seed, stride = map(int, numbers)
    oracle = Oracle(Path(folder), seed, KINDS[kind])
    ended = 0
    for turn in range(0, rounds, stride):
        ended += killed(oracle, turn + 1 if mode == "calls" else 0)
    oracle.finish()
    told = f"whole {len(oracle.envelopes)} {len(oracle.acknowledged)} {len(oracle.seen)} {ended}"
    sys.stdout.write(told + "\n")
