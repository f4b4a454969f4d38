"""Openings that are killed again and again, beside a count of all records.

`main` prints how many runs were killed. Each run kills itself at a later
call that touches a file, or adds up counts; after each the state is read, and must name each batch at most
once, with counts that add up to the records of what was opened.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from sfumato.local.shuffle import opening, opening_progress
from tests.local.shuffle.opening_setting import ANALYST, SIZE, batch, collection

BATCHES = 6
STEPS = {"open", "write", "flush", "fsync", "close", "replace"}

# Pieces of four records, and a state after each of them: so every batch is open in part for some time.
vars(opening_progress).update(PIECE=4)
vars(opening).update(PIECE=4, _EVERY=4)


def killed(state: Path, paths: list[Path], at: int) -> bool:
    """Open in a process that is killed at some call; return whether it was."""
    child = os.fork()
    if not child:
        left = at

        def count(_: Any, event: str, called: Any) -> None:
            nonlocal left
            if event in ("c_call", "c_return") and called.__name__ in STEPS:
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        with collection().opening(ANALYST, state=state) as made:
            sys.setprofile(count)
            made.add_batches(paths)
            sys.setprofile(None)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0
    return os.WIFSIGNALED(status)


def counted(state: Path) -> int:
    """How many records a state has counted; that it is whole is checked where it is read."""
    with collection().opening(ANALYST, state=state) as made:
        return made.aggregator.accepted + sum(made.refused.values())


def main(place: str) -> None:
    """Kill openings until one ends."""
    folder, paths, whole = Path(place), [], collection().opening(ANALYST)
    for number in range(1, BATCHES + 1):
        whole.add(batch(number))
        paths.append(folder / str(number))
        paths[-1].write_bytes(batch(number).to_bytes())
    state, before, runs = folder / "state", 0, 0
    while killed(state, paths, at=2 * runs):
        now = counted(state)
        assert before <= now <= BATCHES * SIZE
        before, runs = now, runs + 1
    assert state.read_bytes() == whole.to_bytes()
    assert counted(state) == BATCHES * SIZE
    sys.stdout.write(f"{runs}\n")
