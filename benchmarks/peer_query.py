"""The bounded aggregation of peers beside ours, in one run on one table, each peer in its own environment.

The job: places that are not known beforehand, each person in at most 10 of them with at most 5 rows in each;
count, sum and mean; epsilon 1 and delta 1e-8 in all. What a peer does otherwise stands beside its figures.
What counts is the CPU time from opening the file to the noisy table, imports left out, processes below
included. A peer that fails, or is not done in time, gets a row that says so.
``python -m benchmarks.peer_query [--rows N] [--limit SECONDS] [--peers NAME ...]``
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import sfumato
from benchmarks import query
from benchmarks.data import visits
from benchmarks.environments import interpreter, script, title
from benchmarks.peers.measure import held, tree

__all__ = ["main"]

_PEERS = ("opendp", "smartnoise", "pipelinedp", "diffprivlib", "tumult")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """What one script reported; None where it did not come so far."""

    cpu: float | None = None
    wall: float | None = None
    peak: float | None = None
    groups: int | None = None
    note: str

    def line(self, name: str, floor: float) -> str:
        cells = (
            "-" if self.cpu is None else f"{self.cpu:.2f}",
            "-" if self.cpu is None else f"{self.cpu / floor:.1f}",
            "-" if self.wall is None else f"{self.wall:.1f}",
            "-" if self.peak is None else f"{self.peak / 1e9:.2f}",
            "-" if self.groups is None else f"{self.groups}",
        )
        return f"{name:<26}" + "".join(f"{cell:>9}" for cell in cells) + f"  {self.note}"


def _stopped(process: subprocess.Popen[str], limit: float) -> _Row:
    """Stop a script with all that it started, and say what they had cost until then."""
    seconds = tree(process.pid)
    row = _Row(
        cpu=sum(seconds.values()) or None,
        wall=limit,
        peak=max(map(held, seconds), default=0) or None,
        note=f"not done after {limit:.0f} s, and stopped",
    )
    for pid in seconds or (process.pid,):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.communicate()
    return row


def _run(python: Path, program: Path, table: Path, limit: float) -> _Row:
    """Run one script in a scratch folder, which goes when it ends."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        process = subprocess.Popen(
            [python, program, table],
            cwd=scratch,
            env=os.environ | {"TMPDIR": scratch},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            output, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            return _stopped(process, limit)
    if process.returncode:
        return _Row(note=f"failed: {(errors.strip().splitlines() or ['no message'])[-1][:200]}")
    return _Row(**json.loads(output.splitlines()[-1]))


def _peer(peer: str, table: Path, limit: float) -> _Row:
    try:
        python = interpreter(peer)
    except subprocess.CalledProcessError:
        return _Row(note="could not be installed")
    return _run(python, script(peer, "query"), table, limit)


def main(argv: Sequence[str] | None = None) -> int:
    """Print a row for the floor, for ours and for each peer."""
    parser = argparse.ArgumentParser(prog="peer-query", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for each peer")
    parser.add_argument("--peers", nargs="*", choices=_PEERS, default=_PEERS)
    options = parser.parse_args(argv)
    table = visits(options.rows)
    figures = query.measure(options.rows)
    floor = figures.plain
    heads = "".join(f"{head:>9}" for head in ("CPU s", "ratio", "wall s", "peak GB", "groups"))
    print(f"{options.rows:,} rows, {time.strftime('%Y-%m-%d')}\n{'':<26}{heads}  what it did")
    print(_Row(cpu=floor, note="no privacy: the floor").line("plain GROUP BY", floor))
    ours = _Row(cpu=figures.bounded, peak=figures.peak, note="the engine's part of ours, warm")
    print(ours.line("bounded sums", floor), flush=True)
    row = _run(Path(sys.executable), script("sfumato", "query"), table, options.limit)
    print(row.line(f"sfumato {sfumato.__version__}", floor), flush=True)
    for peer in options.peers:
        print(_peer(peer, table, options.limit).line(title(peer), floor), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
