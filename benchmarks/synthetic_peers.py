"""Generators of peers on Adult, each in a virtual environment of its own, beside ours.

All take the rows as cells of the declared domain. A peer has so many CPU seconds for a job; one that
needs more is ended, and the row says so. What a peer raises is shown by its last line.
"""

from __future__ import annotations

import json
import resource
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.environments import interpreter, script, title

__all__ = ["peer_rows"]

Distance = Callable[[NDArray[np.int64], int], float]
_JOBS = (
    ("mbi", "MST"),
    ("smartnoise_synth", "MST"),
    ("smartnoise_synth", "AIM"),
    ("dpmm", "MST"),
    ("dpmm", "AIM"),
    ("privsyn", "PrivSyn"),
)


def peer_rows(
    rows: NDArray[np.int64],
    sizes: Sequence[int],
    distance: Distance,
    *,
    epsilon: float,
    delta: float,
    seeds: int,
    limit: int,
) -> Iterator[list[str]]:
    """Yield a row for each job of a peer.

    Parameters
    ----------
    rows : int64 array of shape (rows, columns)
    sizes : sequence of int
    distance : callable
        From synthetic rows and a width to their distance from the rows.
    epsilon, delta : float
    seeds : int
    limit : int
        CPU seconds of one job.

    Yields
    ------
    list of str
    """
    yield ["peer", "generator", "CPU seconds", "pairs", "triples"]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "rows.npz"), Path(folder, "drawn.npy")
        np.savez(source, rows=rows, sizes=np.array(sizes))
        for peer, name in _JOBS:
            found: list[tuple[float, float, float]] = []
            failed = ""
            for seed in range(seeds):
                seconds, failed = _ran(peer, [source, target, name, epsilon, delta, seed], limit)
                if failed:
                    break
                drawn = np.load(target)
                found.append((seconds, distance(drawn, 2), distance(drawn, 3)))
            if failed:
                yield [title(peer), name, failed, "", ""]
            else:
                slowest = max(seconds for seconds, _, _ in found)
                means = [f"{each:.4f}" for each in np.mean(found, axis=0)[1:]]
                yield [title(peer), name, f"{slowest:.1f}", *means]


def _ran(peer: str, given: Sequence[Any], limit: int) -> tuple[float, str]:
    """Return a job's CPU seconds, or what it failed of."""
    done = subprocess.run(
        [str(interpreter(peer)), str(script(peer, "synthetic")), *map(str, given)],
        check=False,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 10)),
    )
    if done.returncode < 0:
        return 0.0, f"not within {limit}"
    if done.returncode:
        return 0.0, f"fails: {done.stderr.strip().splitlines()[-1][:100]}"
    return float(json.loads(done.stdout.splitlines()[-1])["seconds"]), ""
