"""All marginals of two and three of 16 binary attributes, from a million local reports."""

from __future__ import annotations

import time
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import local

__all__ = ["measure_marginals"]

ATTRIBUTES = 16


def tree(people: int) -> NDArray[np.int64]:
    """Rows in which attribute j copies attribute j // 2 for seven of ten, and is drawn for the others."""
    source = np.random.default_rng(5)
    rows = source.integers(0, 2, (people, ATTRIBUTES))
    rows[:, 0] = source.random(people) < 0.3
    for at in range(1, ATTRIBUTES):
        rows[:, at] = np.where(source.random(people) < 0.7, rows[:, at // 2], rows[:, at] * rows[:, at - 1])
    return rows


def distances(joint: NDArray[np.float64], found: Any, order: int) -> float:
    """Mean distance in total variation over all marginals of some attributes."""
    away = []
    for one in combinations(range(ATTRIBUTES), order):
        truth = joint.sum(axis=tuple(at for at in range(ATTRIBUTES) if at not in one))
        away.append(np.abs(found.table(*one) - truth).sum() / 2)
    return float(np.mean(away))


def measure_marginals(people: int, epsilon: float, runs: int) -> None:
    """Print a row for each protocol: the best seconds, and mean distances as estimated and made to agree."""
    domains, rows = [local.Domain(range(2))] * ATTRIBUTES, tree(people)
    counts = np.bincount(rows @ (1 << np.arange(ATTRIBUTES)[::-1]), minlength=1 << ATTRIBUTES)
    joint = (counts / people).reshape((2,) * ATTRIBUTES)
    choice = local.choose(local.Marginals(domains, order=3, example=tree(20_000)), epsilon=epsilon, n=people)
    plans = [plan for plan in choice.plans if plan.views]
    best = min(plans, key=lambda plan: plan.error)
    full = min((plan for plan in plans if plan.construction == 0), key=lambda plan: plan.error)
    common: dict[str, Any] = {"epsilon": epsilon, "domains": domains}
    named: dict[str, Any] = {
        "signs of up to 3": local.FourierMarginals(order=3, **common),
        "alike likely (InpHT)": local.FourierMarginals(order=3, weights=(1, 1, 1), **common),
        "signs of up to 2": local.FourierMarginals(order=2, **common),
        "all 120 pairs": local.SampledMarginals.every(2, **common),
        "all 560 triples": local.SampledMarginals.every(3, **common),
    }
    for plan in (full, best):
        named[f"{len(plan.views)} tables of {plan.width}"] = choice.protocol(plan)
    print(
        f"\nMarginals of {ATTRIBUTES} attributes, {people:,} reports: seconds (of CPU), distances in percent"
    )
    print(f"{'':<22}{'bytes':>6}{'clients':>14}{'server':>14}{'agreeing':>14}", end="")
    print(f"{'pairs':>7}{'triples':>8}{'agreed':>8}{'triples':>8}")
    for name, protocol in named.items():
        found = [_run(protocol, rows, joint) for _ in range(runs)]
        print(f"{name:<22}{protocol.device.width:>6}", end="")
        for step in range(3):
            spent = min(run[0][step] for run in found)
            print(f"{f'{spent[0]:.2f} ({spent[1]:.2f})':>14}", end="")
        away = np.mean([run[1] for run in found], axis=0)
        print(
            "".join(f"{one:>{width}.2f}" for one, width in zip(away, (7, 8, 8, 8), strict=True)), flush=True
        )


def _run(
    protocol: Any, rows: NDArray[np.int64], joint: NDArray[np.float64]
) -> tuple[list[tuple[float, float]], list[float]]:
    """Return seconds of clients, server and agreement, and distances before and after that."""
    clocks = [(time.perf_counter(), time.process_time())]
    reports = protocol.randomize_batch(rows)
    clocks.append((time.perf_counter(), time.process_time()))
    aggregator = protocol.aggregator()
    aggregator.add_batch(reports)
    estimate = aggregator.estimate()
    clocks.append((time.perf_counter(), time.process_time()))
    agreed = estimate.consistent()
    clocks.append((time.perf_counter(), time.process_time()))
    told = all(one in estimate.evidence.lattice.starts for one in combinations(range(ATTRIBUTES), 3))
    away = [
        100 * distances(joint, made, order) if told or made is agreed or order == 2 else np.nan
        for made in (estimate, agreed)
        for order in (2, 3)
    ]
    return [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(clocks)], away
