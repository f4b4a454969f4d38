"""Ranges told locally: trees and Haar coefficients beside flat histograms, whose values are added up."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import local
from sfumato.local.ranges.protocol import range_ends

__all__ = ["measure_ranges"]

SIZE = 1024
LENGTHS = (1, 32, 512)
REPEATS = 100


def _flat(kind: Any) -> Callable[[float, local.Domain], Any]:
    return lambda epsilon, domain: kind(epsilon=epsilon, domain=domain)


def _tree(**given: Any) -> Callable[[float, local.Domain], Any]:
    return lambda epsilon, domain: local.HierarchicalHistogram(epsilon=epsilon, domain=domain, **given)


ROWS: dict[str, Callable[[float, local.Domain], Any]] = {
    "OptimizedUnaryEncoding, added": _flat(local.OptimizedUnaryEncoding),
    "OptimalLocalHashing, added": _flat(local.OptimalLocalHashing),
    "flat, sum known to be 1": _tree(branching=SIZE),
    "HierarchicalHistogram": _tree(),
    "  of OneBitHadamard": _tree(oracle=local.OneBitHadamard),
    "  of ProjectiveGeometryResponse": _tree(oracle=local.ProjectiveGeometryResponse),
    "HaarHistogram": lambda epsilon, domain: local.HaarHistogram(epsilon=epsilon, domain=domain),
}


def measure_ranges(people: int, epsilon: float, runs: int) -> None:
    """Print the times of each protocol, and the squared error of ranges as a mean over drawn counts."""
    domain = local.Domain(range(SIZE))
    values = np.random.default_rng(1).beta(2, 5, people) * SIZE
    held = values.astype(np.int64)
    counts = np.bincount(held, minlength=SIZE)
    truth = np.concatenate([[0.0], np.cumsum(counts / people)])
    print(f"\nranges of {SIZE:,} values, {people:,} reports, epsilon {epsilon}: best time, squared error")
    print(f"{'protocol':<32}{'bytes':>6}{'clients':>9}{'server':>9}", end="")
    print("".join(f"{f'of {length}':>11}" for length in LENGTHS) + f"{'of all':>11}{'over theory':>13}")
    for name, make in ROWS.items():
        protocol = make(epsilon, domain)
        clients, servers, errors = [], [], []
        for _ in range(runs):
            start = time.perf_counter()
            reports = protocol.randomize_batch(held)
            sent = time.perf_counter()
            aggregator = protocol.aggregator()
            aggregator.add_batch(reports)
            estimate = aggregator.estimate()
            servers.append(time.perf_counter() - sent)
            clients.append(sent - start)
        generator = np.random.default_rng(2)
        for _ in range(REPEATS):
            raw = protocol.simulate(counts, generator).raw
            away = np.concatenate([[0.0], np.cumsum(raw)]) - truth
            errors.append([_squared(away, length) for length in (*LENGTHS, None)])
        mean, theory = np.mean(errors, axis=0), _theory(estimate, protocol, people, truth)
        print(
            f"{name:<32}{protocol.device.width:>6}{min(clients):>9.3f}{min(servers):>9.3f}"
            + "".join(f"{error:>11.2e}" for error in mean)
            + f"{mean[-1] / theory:>13.2f}",
            flush=True,
        )


def _squared(away: NDArray[np.float64], length: int | None) -> float:
    """The mean squared error over ranges of one length, or of all."""
    first, last = range_ends(SIZE, length)
    return float(np.mean((away[last + 1] - away[first]) ** 2))


def _theory(estimate: Any, protocol: Any, people: int, truth: NDArray[np.float64]) -> float:
    """What theory says of ranges of all lengths."""
    first, last = range_ends(SIZE, None)
    if not isinstance(estimate, local.Estimate):
        return float(protocol.variance(people, first, last, np.diff(truth)).mean())
    matrix = estimate.error_model.covariance(np.diff(truth), np.arange(SIZE)) / people
    sums = np.zeros((SIZE + 1, SIZE + 1))
    sums[1:, 1:] = matrix.cumsum(axis=0).cumsum(axis=1)
    end, start = last + 1, first
    return float(np.mean(sums[end, end] - sums[end, start] - sums[start, end] + sums[start, start]))
