"""Seconds to audit one mechanism at a million runs per input, and what the time of single releases tells.

Audits take wall and CPU seconds on one core, runs included; the limit is 10 s. The floor is the runs alone.
Timing is the rank correlation of the time of one release with its noise, at the granularity of a caller; the
limit is 0.02 beyond what chance gives.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from sfumato.audit import audit, audit_precision, audit_timing
from sfumato.audit.input_pairs import as_pairs
from sfumato.audit.repeated_runs import runner
from sfumato.audit.specimens import ChenSparseVector
from sfumato.mechanisms import Gaussian, Histogram, Laplace

__all__ = ["main", "measure_audits", "measure_timing"]

LIMIT = 10.0


def seconds(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Wall and CPU seconds, and the result."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def measure_audits(trials: int) -> bool:
    """Print the seconds of each audit; return whether all are within the limit."""
    broken = ChenSparseVector(rng=1)
    generator = np.random.default_rng(1)
    histogram = Laplace.for_query(Histogram(categories=tuple("abcd")), epsilon=1.0)
    subjects: dict[str, tuple[Any, float, float, list[Any]]] = {
        "Laplace, integers": (Laplace(sensitivity=1, scale=1), 1.0, 0.0, [(0, 1)]),
        "Laplace, reals": (Laplace(sensitivity=1.0, scale=1.0), 1.0, 0.0, [(0.0, 1.0)]),
        "Gaussian, reals": (
            Gaussian.calibrated(sensitivity=1.0, epsilon=1.0, delta=1e-5),
            1.0,
            1e-5,
            [(0.0, 1.0)],
        ),
        "histogram of 4": (histogram, 1.0, 0.0, [(np.array(["a", "b"]), np.array(["a"]))]),
        "vector of 16": (
            Laplace(sensitivity=1.0, scale=16.0, l0=16),
            1.0,
            0.0,
            [(np.zeros(16), np.ones(16))],
        ),
        "sparse vector, wrong": (broken, 1.0, 0.0, list(broken.pairs)),
        "numpy's Laplace": (lambda data, size: data + generator.laplace(size=size), 1.0, 0.0, [(0.0, 1.0)]),
    }
    print(f"{trials} runs on each of two inputs, one core\n")
    print(f"{'audited':<22}{'wall, s':>9}{'CPU, s':>8}{'runs, s':>9}{'epsilon >=':>12}{'impossible':>12}")
    slowest = 0.0
    for name, (mechanism, epsilon, delta, pairs) in subjects.items():
        floor = seconds(partial(_run_all, mechanism, pairs, trials))[1]
        claim: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "pairs": pairs, "trials": trials}
        wall, cpu, found = seconds(partial(audit, mechanism, **claim))
        bits = audit_precision(mechanism, **claim)
        slowest = max(slowest, wall)
        print(
            f"{name:<22}{wall:>9.2f}{cpu:>8.2f}{floor:>9.2f}{found.epsilon_lower:>12.4f}{bits.impossible:>12}",
            flush=True,
        )
    print(f"\nslowest {slowest:.2f} s, limit {LIMIT:g} s")
    return slowest <= LIMIT


def _run_all(mechanism: Any, pairs: list[Any], trials: int) -> None:
    run = runner(mechanism)
    for pair in as_pairs(pairs):
        run(pair.first, trials)
        run(pair.second, trials)


def measure_timing(calls: int) -> None:
    """Print the rank correlation of time and noise of single releases."""
    print(f"\n{'released':<22}{'median, us':>12}{'Spearman':>10}{'chance':>9}")
    for name, mechanism in {
        "Laplace, scale 5": Laplace(sensitivity=1, scale=5),
        "Laplace, scale 1000": Laplace(sensitivity=1, scale=1000),
        "Gaussian, stddev 5": Gaussian(sensitivity=1, stddev=5),
        "Gaussian, stddev 1000": Gaussian(sensitivity=1, stddev=1000),
        "Laplace, reals": Laplace(sensitivity=1.0, scale=5.0),
    }.items():
        timed = audit_timing(mechanism, 0, answer=0.0, calls=calls)
        print(
            f"{name:<22}{1e6 * timed.median_seconds:>12.1f}{timed.spearman:>10.4f}{timed.chance:>9.4f}",
            flush=True,
        )


def main(argv: Sequence[str]) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks audit", description=__doc__)
    parser.add_argument("--trials", type=int, default=1_000_000, help="runs on each input")
    parser.add_argument("--calls", type=int, default=40_000, help="single releases that are timed")
    options = parser.parse_args(argv)
    within = measure_audits(options.trials)
    measure_timing(options.calls)
    return 0 if within else 1
