"""Noise of peers beside ours, in one run; each peer in a virtual environment of its own.

The environments are made under ``benchmarks/.peers`` on first use, from the package index that pip knows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import venv
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.noise import LAWS, SCALES, best_seconds

__all__ = ["main"]

_HERE = Path(__file__).parent
_PEERS: dict[str, tuple[str, ...]] = {
    "opendp": ("opendp==0.16.0",),
    # With the newest scikit-learn it does not import.
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn==1.6.1"),
}


def _interpreter(peer: str) -> Path:
    """Make the peer's environment, unless it is there, and return its interpreter."""
    home = _HERE / ".peers" / peer
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *_PEERS[peer]], check=True)
    return python


def _peer_speeds(peer: str) -> dict[str, list[float | None]]:
    script = _HERE / "peers" / f"{peer}_noise.py"
    done = subprocess.run([_interpreter(peer), script], check=True, capture_output=True, text=True)
    speeds: dict[str, list[float | None]] = json.loads(done.stdout)
    return speeds


def main(argv: Sequence[str] | None = None) -> int:
    """Print million draws per second of CPU time, at the scales 1, 1e3 and 1e6."""
    parser = argparse.ArgumentParser(prog="peers", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    count = parser.parse_args(argv).count
    generator = np.random.default_rng(1)
    rows: dict[str, dict[str, list[float | None]]] = {
        "sfumato (exact)": {
            law: [count / best_seconds(partial(sample, scale, count), 5) / 1e6 for scale in SCALES]
            for law, (sample, _) in LAWS.items()
        },
        f"numpy {np.__version__} (float, not private)": {
            "laplace": [count / best_seconds(lambda: generator.laplace(size=count), 5) / 1e6] * 3,
            "gaussian": [count / best_seconds(lambda: generator.normal(size=count), 5) / 1e6] * 3,
        },
    }
    rows |= {_PEERS[peer][0]: _peer_speeds(peer) for peer in _PEERS}
    for law in LAWS:
        print(f"{law + ', million draws/s':<40}" + "".join(f"{scale:>12}" for scale in SCALES))
        for name, speeds in rows.items():
            cells = ("-" if speed is None else f"{speed:.3g}" for speed in speeds[law])
            print(f"{name:<40}" + "".join(f"{cell:>12}" for cell in cells))
    return 0


if __name__ == "__main__":
    sys.exit(main())
