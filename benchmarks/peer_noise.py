"""Noise of peers beside ours, in one run; each peer in a virtual environment of its own."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from functools import partial

import numpy as np

from benchmarks.environments import interpreter, script, title
from benchmarks.noise import DISTRIBUTIONS, SCALES, best_seconds

__all__ = ["main"]

_PEERS = ("opendp", "diffprivlib")


def _peer_speeds(peer: str) -> dict[str, list[float | None]]:
    command = [interpreter(peer), script(peer, "noise")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    speeds: dict[str, list[float | None]] = json.loads(done.stdout)
    return speeds


def main(argv: Sequence[str] | None = None) -> int:
    """Print million draws per second of CPU time, at the scales 1, 1e3 and 1e6."""
    parser = argparse.ArgumentParser(prog="peer-noise", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    count = parser.parse_args(argv).count
    generator = np.random.default_rng(1)
    rows: dict[str, dict[str, list[float | None]]] = {
        "sfumato (exact)": {
            distribution: [count / best_seconds(partial(sample, scale, count), 5) / 1e6 for scale in SCALES]
            for distribution, (sample, _) in DISTRIBUTIONS.items()
        },
        f"numpy {np.__version__} (float, not private)": {
            "laplace": [count / best_seconds(lambda: generator.laplace(size=count), 5) / 1e6] * 3,
            "gaussian": [count / best_seconds(lambda: generator.normal(size=count), 5) / 1e6] * 3,
        },
    }
    rows |= {title(peer): _peer_speeds(peer) for peer in _PEERS}
    for distribution in DISTRIBUTIONS:
        print(f"{distribution + ', million draws/s':<40}" + "".join(f"{scale:>12}" for scale in SCALES))
        for name, speeds in rows.items():
            cells = ("-" if speed is None else f"{speed:.3g}" for speed in speeds[distribution])
            print(f"{name:<40}" + "".join(f"{cell:>12}" for cell in cells))
    return 0


if __name__ == "__main__":
    sys.exit(main())
