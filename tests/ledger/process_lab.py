"""Processes that share a ledger, and disks and folders that refuse to be written, for real.

Run as ``python process_lab.py EXPERIMENT FOLDER``: a process of its own, because it forks. Prints one line of
JSON: ``{"done": ...}``, or ``{"skipped": why}`` where the operating system makes the experiment impossible.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import BudgetExceeded, LedgerUnavailable
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import Neighboring, PureDP

NOBODY = 65534


def open_ledger(path: Path | None, epsilon: float = 1.0) -> Ledger:
    return Ledger.open(
        path,
        budget=Budget.pure(epsilon=epsilon),
        privacy_unit="id",
        neighboring=Neighboring.ADD_REMOVE,
        dataset=Dataset(schema="s", fingerprint=lambda key: key.hex()),
    )


class Child:
    """A forked process that waits for the starting signal, works, and reports one value."""

    def __init__(self, work: Callable[[], object]) -> None:
        start, self._starting = os.pipe()
        self._result, result = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(self._starting)
            os.read(start, 1)
            try:
                value = ["value", work()]
            except BaseException as error:
                value = ["error", repr(error)]
            os.write(result, json.dumps(value).encode())
            os._exit(0)
        os.close(start)
        os.close(result)

    def start(self) -> None:
        os.close(self._starting)

    def value(self) -> Any:
        with os.fdopen(self._result, "rb") as pipe:
            kind, value = json.loads(pipe.read())
        os.waitpid(self.process, 0)
        assert kind == "value", value
        return value


def together(works: list[Callable[[], object]]) -> list[Any]:
    """Run all at once: a child begins when its pipe is closed."""
    children = [Child(work) for work in works]
    for child in children:
        child.start()
    return [child.value() for child in children]


def charge_until_refused(path: Path, epsilon: float) -> list[int]:
    receipts = []
    with open_ledger(path) as ledger, contextlib.suppress(BudgetExceeded):
        while True:
            receipts.append(ledger.charge(PureDP(epsilon), delta=0.0).sequence)
    return receipts


def race(folder: Path) -> object:
    """Six processes spend one budget of 64 charges: each charge is won once, and none is left over."""
    open_ledger(folder / "l").close()
    won = together([lambda: charge_until_refused(folder / "l", 1 / 64)] * 6)
    assert sorted(number for mine in won for number in mine) == list(range(1, 65))
    with open_ledger(folder / "l") as ledger:
        assert ledger.verify().sound
        assert len(ledger.entries()) == 64
    return [len(mine) for mine in won]


def last_of_the_budget(folder: Path) -> object:
    """Eight processes race for the last answer, many times: exactly one wins each time."""
    for number in range(10):
        path = folder / f"l{number}"
        with open_ledger(path) as ledger:
            ledger.charge(PureDP(0.5), delta=0.0)
        won = together([lambda path=path: charge_until_refused(path, 0.5)] * 8)  # type: ignore[misc]
        assert sorted(won) == [[]] * 7 + [[2]]
    return "one"


def making(folder: Path) -> object:
    """Eight processes make one ledger at once: one file, one key, everybody in it."""

    def make() -> str:
        with open_ledger(folder / "l") as ledger:
            ledger.charge(PureDP(0.01), delta=0.0)
            return ledger.ledger_id

    assert len(set(together([make] * 8))) == 1
    with open_ledger(folder / "l") as ledger:
        assert len(ledger.entries()) == 8
    assert [file.name for file in folder.iterdir()] == ["l"]
    return 8


def inherited(folder: Path) -> object:
    """A ledger opened before a fork works in the child, and in the parent, on one budget."""
    ledger = open_ledger(folder / "l")
    ledger.charge(PureDP(0.5), delta=0.0)

    def child() -> int:
        ledger.charge(PureDP(0.25), delta=0.0)
        with contextlib.suppress(BudgetExceeded):
            ledger.charge(PureDP(0.5), delta=0.0)
        ledger.close()
        return len(open_ledger(folder / "l").entries())

    assert together([child]) == [2]
    assert ledger.remaining().epsilon == 0.25
    ledger.charge(PureDP(0.25), delta=0.0)
    return ledger.verify().charges


def forks_amid_threads(folder: Path) -> object:
    """Forking while other threads are in the middle of charges breaks neither them nor the child."""
    ledger = open_ledger(folder / "l")
    rounds, forks = 40, 15

    def charge() -> None:
        for _ in range(rounds):
            ledger.charge(PureDP(2.0**-12), delta=0.0)

    threads = [threading.Thread(target=charge) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(forks):
        together([lambda: ledger.charge(PureDP(2.0**-12), delta=0.0).sequence])
    for thread in threads:
        thread.join()
    found = ledger.verify()
    assert found.sound
    assert found.charges == 2 * rounds + forks
    return found.charges


def memory_after_fork(folder: Path) -> object:
    """A ledger in memory refuses in a child, which would spend the same budget again."""
    del folder
    ledger = open_ledger(None)
    ledger.charge(PureDP(0.5), delta=0.0)

    def child() -> list[str]:
        refused = []
        for action in (lambda: ledger.charge(PureDP(0.5), delta=0.0), ledger.remaining, ledger.entries):
            try:
                action()
            except LedgerUnavailable as error:
                refused.append(str(error))
        return refused

    (refused,) = together([child])
    assert len(refused) == 3
    assert all("keep the ledger in a file" in message for message in refused)
    ledger.charge(PureDP(0.5), delta=0.0)
    return ledger.verify().charges


def limited_size(folder: Path) -> object:
    """A file that may not grow (RLIMIT_FSIZE) refuses charges and answers again once it may."""
    ledger = open_ledger(folder / "l")
    receipt = ledger.charge(PureDP(0.01), delta=0.0, request="q")
    size = (folder / "l").stat().st_size
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        not_stored(lambda: ledger.commit(receipt, bytes(100_000)))
        until_refused(ledger, most=50)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
        refused(lambda: open_ledger(folder / "new"))
        assert [file.name for file in folder.iterdir()] == ["l"]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    return works_again(ledger, receipt)


def small_disk(folder: Path) -> object:
    """A disk that fills up: a small file system of its own, where one may be mounted."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        raise Impossible("no file system can be mounted here")
    try:
        ledger = open_ledger(folder / "l")
        receipt = ledger.charge(PureDP(0.01), delta=0.0, request="q")
        filler = folder / "filler"
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1024))
        not_stored(lambda: ledger.commit(receipt, bytes(10_000)))
        until_refused(ledger, most=50)
        refused(lambda: open_ledger(folder / "new"))
        filler.unlink()
        assert [file.name for file in folder.iterdir()] == ["l"]
        charges = works_again(ledger, receipt)
        ledger.close()
    finally:
        subprocess.run(["umount", str(folder)], check=True)
    return charges


def read_only(folder: Path) -> object:
    """A folder and a file that may not be written, for a user whom the permissions bind."""
    ledger = open_ledger(folder / "l")
    receipt = ledger.charge(PureDP(0.01), delta=0.0, request="q")
    ledger.close()
    for place in (folder, folder / "l"):
        if os.getuid() == 0:
            os.chown(place, NOBODY, NOBODY)

    def bound() -> object:
        if os.getuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        ledger = open_ledger(folder / "l")
        with mode(folder, 0o500):
            refused(lambda: ledger.charge(PureDP(0.01), delta=0.0))
            not_stored(lambda: ledger.commit(receipt, b"x"))
            refused(lambda: open_ledger(folder / "new"))
            with Ledger.read(folder / "l") as seen:
                assert len(seen.entries()) == 1
                assert seen.verify().sound
        with mode(folder / "l", 0o400):
            with open_ledger(folder / "l") as other:
                refused(lambda: other.charge(PureDP(0.01), delta=0.0))
            with Ledger.read(folder / "l") as seen:
                assert len(seen.entries()) == 1
        with mode(folder / "l", 0o000):
            refused(lambda: Ledger.read(folder / "l"))
            refused(lambda: open_ledger(folder / "l"))
        with mode(folder, 0o000):
            refused(lambda: open_ledger(folder / "l"))
            refused(lambda: ledger.charge(PureDP(0.01), delta=0.0))
        assert [file.name for file in folder.iterdir()] == ["l"]
        return works_again(ledger, receipt)

    return together([bound])[0]


class Impossible(Exception):
    """The operating system does not let this experiment be made."""


@contextlib.contextmanager
def mode(path: Path, permissions: int) -> Iterator[None]:
    before = path.stat().st_mode
    path.chmod(permissions)
    try:
        yield
    finally:
        path.chmod(before)


def refused(action: Callable[[], object]) -> None:
    with pytest.raises(LedgerUnavailable, match="nothing was charged"):
        action()


def not_stored(action: Callable[[], object]) -> None:
    """The charge is on the disk, and its answer cannot be: the error says both."""
    with pytest.raises(
        LedgerUnavailable, match="charge 1 stays, and its answer is not safely stored"
    ) as told:
        action()
    assert "nothing was charged" not in str(told.value)


def until_refused(ledger: Ledger, *, most: int) -> None:
    """Charge until the disk refuses; the last receipt is the last entry."""
    last = len(ledger.entries())
    for _ in range(most):
        try:
            last = ledger.charge(PureDP(2.0**-10), delta=0.0, description="x" * 500).sequence
        except LedgerUnavailable:
            break
    else:
        raise AssertionError("the disk never refused")
    assert len(ledger.entries()) == last
    assert ledger.verify().sound


def works_again(ledger: Ledger, receipt: Any) -> int:
    ledger.commit(receipt, b"answer")
    assert ledger.find("q") == b"answer"
    charged = len(ledger.entries())
    assert ledger.charge(PureDP(0.01), delta=0.0).sequence == charged + 1
    assert ledger.verify().sound
    return charged


EXPERIMENTS = {
    work.__name__: work
    for work in (
        race,
        last_of_the_budget,
        making,
        inherited,
        forks_amid_threads,
        memory_after_fork,
        limited_size,
        small_disk,
        read_only,
    )
}


def main(experiment: str, folder: str) -> None:
    try:
        outcome = {"done": EXPERIMENTS[experiment](Path(folder))}
    except Impossible as reason:
        outcome = {"skipped": str(reason)}
    print(json.dumps(outcome))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
