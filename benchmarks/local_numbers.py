"""Local reports of numbers, vectors and several questions: seconds of all clients and of the server.

A million numbers, and as many vectors of 100 numbers as the table says: a device makes all candidates of its
seed, so that simulating many devices takes long, where one takes less than a millisecond. The server's time
holds the estimate; for the square wave that is the most likely distribution.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np

from sfumato import local

__all__ = ["NUMBERS", "measure_long_vectors", "measure_numbers"]

Made = tuple[Any, Any, Callable[[Any], tuple[float, float]]]
"""A protocol, true values, and what tells an estimate's squared error and its theory."""


def _mean(kind: str, people: int, epsilon: float) -> Made:
    protocol = getattr(local, kind)(epsilon=epsilon, bounds=(18.0, 90.0))
    ages = np.random.default_rng(1).normal(44, 12, people).clip(18, 90)
    some = ages[:: max(1, people // 200)]
    theory = float(np.mean([protocol.variance(people, age) for age in some.tolist()]))

    def error(estimate: Any) -> tuple[float, float]:
        mean = getattr(estimate, "mean", estimate) if kind == "SquareWave" else estimate
        return float((mean.mean - ages.mean()) ** 2), theory

    return protocol, ages, error


def _vectors(kind: str, people: int, epsilon: float) -> Made:
    protocol = getattr(local, kind)(epsilon=epsilon, dimension=100)
    rows = np.random.default_rng(2).normal(size=(people, 100))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    theory = protocol.variance(people, 1.0)
    return protocol, rows, lambda found: (float(((found.mean - rows.mean(axis=0)) ** 2).sum()), theory)


def _questions(kind: str, people: int, epsilon: float) -> Made:
    domains = [local.Domain(range(size)) for size in (10, 100, 30, 2, 50)]
    protocol = attrgetter(kind)(local)(epsilon=epsilon, domains=domains, oracle=local.OptimalLocalHashing)
    generator = np.random.default_rng(3)
    rows = np.stack([generator.zipf(1.5, people) % len(domain) for domain in domains], axis=1)

    def error(found: Any) -> tuple[float, float]:
        square = theory = 0.0
        for at, estimate in enumerate(found):
            truth = np.bincount(rows[:, at], minlength=len(domains[at])) / people
            square += float(((estimate.raw - truth) ** 2).sum())
            theory += float(estimate.error_model.variance(truth).sum()) / estimate.reports
        return square, theory

    return protocol, rows, error


NUMBERS: dict[str, tuple[Callable[[str, int, float], Made], float]] = {
    **dict.fromkeys(("LaplaceMean", "OneBitMean", "PiecewiseMean", "HybridMean", "SquareWave"), (_mean, 1.0)),
    "SphereSampling": (_vectors, 0.1),
    "PrivUnit": (_vectors, 0.01),
    "PrivUnitG": (_vectors, 0.01),
    "ProjUnit": (_vectors, 0.01),
    **dict.fromkeys(("SplitBudget", "SampledAttribute", "baselines.FakeData"), (_questions, 1.0)),
}
"""By protocol what makes its job, and the share of all people that it is done for."""


def measure_numbers(only: str, people: int, epsilon: float, runs: int) -> None:
    """Print a row for each protocol with ``only`` in its name: the best of some runs."""
    chosen = [name for name in NUMBERS if only.lower() in name.lower()]
    if not chosen:
        return
    print(
        f"\n{'protocol':<20}{'people':>10}{'bytes':>7}{'clients':>9}{'CPU':>8}{'server':>9}{'CPU':>8}{'error':>8}"
    )
    for name in chosen:
        make, share = NUMBERS[name]
        count = max(1, round(people * share))
        protocol, values, error = make(name, count, epsilon)
        rows = [_run(protocol, values) for _ in range(runs if share == 1.0 else 1)]
        client, server = (min(row[half] for row in rows) for half in (0, 1))
        square, theory = error(rows[-1][2])
        print(
            f"{name:<20}{count:>10,}{protocol.device.width:>7}{client[0]:>9.3f}{client[1]:>8.3f}"
            f"{server[0]:>9.3f}{server[1]:>8.3f}{square / theory:>8.2f}",
            flush=True,
        )


def measure_long_vectors(reports: int = 200, dimension: int = 1000) -> None:
    """Print CPU milliseconds of a report of 1,000 numbers, and the error beside that of `PrivUnit`.

    A tenth of the reports for `PrivUnit`, one by one as devices make them; the best of 3 for the others.
    """
    rows = np.random.default_rng(4).normal(size=(reports, dimension))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    print(f"\n{'1,000 numbers':<20}{'epsilon':>8}{'vectors':>9}{'ms':>9}{'server':>9}{'error':>8}")
    for epsilon in (1.0, 2.0, 4.0, 6.0, 8.0):
        worst = local.PrivUnit(epsilon=epsilon, dimension=dimension).variance(1, 1.0)
        for kind in (local.PrivUnit, local.ProjUnit):
            protocol: Any = kind(epsilon=epsilon, dimension=dimension)
            some = rows[: reports // 10] if kind is local.PrivUnit else rows
            made, client = _best(lambda: [protocol.randomize(row) for row in some], 1 + 2 * (some is rows))  # noqa: B023
            records = np.frombuffer(b"".join(made), np.uint8).reshape(len(some), -1)
            server = _best(lambda: protocol.tally(records), 3)[1]  # noqa: B023
            print(
                f"{kind.__name__:<20}{epsilon:>8}{protocol.device.count:>9}{client / len(some) * 1e3:>9.3f}"
                f"{server / len(some) * 1e3:>9.3f}{protocol.variance(1, 1.0) / worst:>8.3f}",
                flush=True,
            )


def _best(act: Callable[[], Any], runs: int) -> tuple[Any, float]:
    """What an act returns, and its least CPU seconds."""
    found = []
    for _ in range(runs):
        started = time.process_time()
        made = act()
        found.append(time.process_time() - started)
    return made, min(found)


def _run(protocol: Any, values: Any) -> tuple[tuple[float, float], tuple[float, float], Any]:
    """Clock and CPU seconds of the clients and of the server, and the estimate."""
    marks = [(time.perf_counter(), time.process_time())]
    reports = protocol.randomize_batch(values)
    marks.append((time.perf_counter(), time.process_time()))
    aggregator = protocol.aggregator()
    aggregator.add_batch(reports)
    estimate = aggregator.estimate()
    if isinstance(estimate, local.DistributionEstimate):
        estimate.shares()
    marks.append((time.perf_counter(), time.process_time()))
    (first, second) = ((b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(marks))
    return first, second, estimate
