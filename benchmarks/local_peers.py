"""Local reports of peers beside ours, in one run; each peer in a virtual environment of its own.

A peer randomizes one value after the other, as it is made to; at 1,024 values and epsilon 1. Its CPU seconds
are measured for the people that are told, and stated for a million as if each further one took as long. What
the peers get wrong about privacy, or fail at with today's dependencies, is measured and told below the table.
"""

from __future__ import annotations

import json
import math
import subprocess
import time
from typing import Any

import numpy as np

from benchmarks.environments import interpreter, script, title
from sfumato import local
from sfumato.numerics.confidence_bounds import lower_confidence_bound, upper_confidence_bound

__all__ = ["measure_peers"]

_PEERS = ("pure_ldp", "multi_freq_ldpy", "ldp_toolbox")
_MILLION = 1_000_000
_RISK = 1e-9


def measure_peers(share: float) -> None:
    """Print a table of CPU seconds for a million reports, and then what went wrong.

    Parameters
    ----------
    share : float
        Of the people of each job of a peer, which take minutes in all.
    """
    told: dict[str, Any] = {}
    for peer in _PEERS:
        command = [str(interpreter(peer)), str(script(peer, "local")), str(share)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        told[peer] = json.loads(done.stdout.splitlines()[-1])
    names = list(dict.fromkeys(name for peer in _PEERS for name in told[peer]["rows"]))
    print("CPU seconds per million reports at 1,024 values and epsilon 1: clients + server")
    print(f"{'':<24}{'ours':>18}" + "".join(f"{title(peer):>34}" for peer in _PEERS))
    for name in names:
        cells = [_cell(told[peer]["rows"].get(name)) for peer in _PEERS]
        print(f"{name:<24}{_ours(name):>18}" + "".join(f"{cell:>34}" for cell in cells), flush=True)
    for peer in _PEERS:
        for name, row in told[peer]["rows"].items():
            if "failed" in row:
                print(f"{title(peer)}, {name}: {row['failed']}")
        if told[peer]["notes"]["hashing"]:
            print(f"{title(peer)} as it is installed: {told[peer]['notes']['hashing']}; mended here to run")
    _print_breaches(told)


def _cell(row: dict[str, Any] | None) -> str:
    if row is None or "failed" in row:
        return "fails" if row else "-"
    scale = _MILLION / row["people"]
    return f"{row['client'] * scale:.1f} + {row['server'] * scale:.1f} (n={row['people']:,})"


def _ours(name: str) -> str:
    """CPU seconds of both halves for a million reports, all of them made."""
    values = (np.random.default_rng(1).zipf(1.5, _MILLION) - 1) % 1024
    if name == "Rappor":
        oracle: Any = local.Rappor(bits=128, hashes=2, cohorts=8)
        given: Any = [str(value) for value in values.tolist()]
    else:
        oracle = getattr(local, name)(epsilon=1.0, domain=local.Domain(range(1024)))
        given = values
    start = time.process_time()
    reports = oracle.randomize_batch(given)
    middle = time.process_time()
    aggregator = oracle.aggregator()
    aggregator.add_batch(reports)
    aggregator.estimate()
    return f"{middle - start:.3f} + {time.process_time() - middle:.3f}"


def _print_breaches(told: dict[str, Any]) -> None:
    rappor = told["pure_ldp"]["notes"]["rappor"]
    print(
        f"{title('pure_ldp')}, RAPPOR at f = 1/2: a bit that is set is reported as 1 with probability "
        f"{rappor['set']:.4f} and one that is not with {rappor['not set']:.4f} ({rappor['trials']:,} trials; "
        "3/4 and 1/4 would be right): a 0 tells that the bit is not set, and epsilon is infinite"
    )
    for case in told["multi_freq_ldpy"]["notes"]["subsets"]:
        least = float(lower_confidence_bound(case["true"], case["trials"], _RISK / 2))
        most = float(upper_confidence_bound(case["false"], case["trials"], _RISK / 2))
        rates = case["true"] / case["trials"], case["false"] / case["trials"]
        print(
            f"{title('multi_freq_ldpy')}, subsets of {case['categories']} values at epsilon 1: a value "
            f"comes first with probability {rates[0]:.4f} where it is true and {rates[1]:.4f} where not; so "
            f"epsilon is at least {math.log(least / most):.2f} (false alarms: {_RISK})"
        )
