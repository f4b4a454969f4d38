"""Prio3, Poplar1 and Mastic: reports a second and core, for the client and both aggregators together."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from sfumato.federated import (
    MasticHeavyHitters,
    MasticParameter,
    Poplar1HeavyHitters,
    Prio3,
    UsedVerifyKeys,
    mastic_sum,
    prio3_count,
    prio3_histogram,
)

__all__ = ["heavy_hitters", "measure", "weighted", "weighted_heavy_hitters"]

KEY = bytes(range(32))


def measure() -> None:
    """Print one row for each function of Prio3."""
    print("\nPrio3 and Poplar1, CPU of one core")
    rng = np.random.default_rng(1)
    row("Prio3Count", prio3_count(), rng.integers(0, 2, 100_000), 20_000)
    row("Prio3Histogram, 1,024 buckets", prio3_histogram(1024, 69), rng.integers(0, 1024, 4_000), 1_000)


def row(name: str, prio3: Prio3, measurements: Any, target: int) -> None:
    """Shard and verify a batch, and print how many reports a second that is."""
    spent: dict[str, float] = {}

    def timed(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        start = time.process_time()
        result = function(*arguments)
        spent[what] = spent.get(what, 0.0) + time.process_time() - start
        return result

    reports = timed("shard", prio3.shard, measurements)
    sides = [
        timed(
            "verify",
            prio3.verify_init,
            KEY,
            j,
            reports.nonces,
            reports.public_shares,
            reports.input_shares[j],
        )
        for j in range(2)
    ]
    messages, passed = timed("verify", prio3.verifier_shares_to_message, [share for _, share in sides])
    totals = []
    for state, _ in sides:
        outputs, agreed = timed("verify", prio3.verify_next, state, messages)
        totals.append(timed("verify", prio3.aggregate, outputs, passed & agreed))
    exact = prio3.unshard(totals)
    assert exact == (np.bincount(measurements).tolist() if isinstance(exact, list) else measurements.sum())
    count, whole = len(measurements), sum(spent.values())
    print(
        f"  {name:30} {count / whole:9,.0f} reports a second (target {target:,}); shard "
        f"{spent['shard'] / count * 1e6:,.0f} us, both aggregators {spent['verify'] / count * 1e6:,.0f} us"
    )


def heavy_hitters(bits: int = 256, clients: int = 10_000, frequent: int = 20) -> None:
    """Print the time in which the most frequent strings are found, bit by bit."""
    rng = np.random.default_rng(1)
    strings = rng.integers(0, 2, (clients, bits), np.uint8)
    common = rng.integers(0, 2, (frequent, bits), np.uint8)
    chosen = rng.integers(0, frequent * 5 // 4, clients)
    strings[chosen < frequent] = common[chosen[chosen < frequent]]
    plan = Poplar1HeavyHitters.calibrated(
        bits=bits, threshold=clients // 50, max_prefixes=frequent, epsilon=8.0, delta=1e-6
    )
    start = time.process_time()
    reports = plan.poplar1.shard(strings)
    sharding = time.process_time() - start
    start = time.process_time()
    sides = [plan.aggregator(KEY, j, UsedVerifyKeys()) for j in range(2)]
    for j, side in enumerate(sides):
        side.receive(reports.nonces, reports.public_shares, reports.input_shares[j])
    answer = plan.run(sides)
    spent = time.process_time() - start
    truth = {"".join(map(str, string)) for string in common.tolist()}
    print(
        f"  Poplar1, {bits} bits, {clients:,} reports, top {frequent}: {spent:.1f} s for both aggregators "
        f"(target 60 s), clients {sharding:.1f} s; {len(truth & set(answer.found))} of {frequent} found at "
        f"epsilon 8, noise {answer.stddev:.1f}"
    )


def weighted(bits: int = 32, clients: int = 10_000, attributes: int = 16) -> None:
    """Print how many reports a second Mastic sums by attribute, weights verified: client and aggregators."""
    rng = np.random.default_rng(1)
    strings = rng.integers(0, 2, (attributes, bits), np.uint8)
    chosen, weights = rng.integers(0, attributes, clients), rng.integers(0, 256, clients)
    mastic = mastic_sum(bits, 255)
    names = ["".join(map(str, string)) for string in strings.tolist()]
    asked = MasticParameter.of(*names, check_weights=True)
    start = time.process_time()
    reports = mastic.shard(strings[chosen], weights)
    sharding = time.process_time() - start
    start = time.process_time()
    sides = [
        mastic.verify_init(
            KEY,
            asked,
            mastic.reports(j, reports.nonces, reports.public_shares, reports.input_shares[j]),
        )
        for j in range(2)
    ]
    messages, passed = mastic.verifier_shares_to_message(asked, [share for _, share in sides])
    totals = []
    for state, _ in sides:
        outputs, agreed = mastic.verify_next(state, messages)
        totals.append(mastic.aggregate(asked, outputs, passed & agreed))
    verifying = time.process_time() - start
    exact = dict(zip(asked.prefixes, mastic.unshard(asked, totals), strict=True))
    assert exact == {name: weights[chosen == i].sum() for i, name in enumerate(names)}
    name = f"MasticSum, {bits} bits, {attributes} attributes"
    print(
        f"  {name:30} {clients / (sharding + verifying):9,.0f} reports a second; shard "
        f"{sharding / clients * 1e6:,.0f} us, both aggregators {verifying / clients * 1e6:,.0f} us"
    )


def weighted_heavy_hitters(
    bits: int = 64, clients: int = 2_000, frequent: int = 20, bits_per_level: int = 4
) -> None:
    """Print the time in which the strings with the largest total weights are found."""
    rng = np.random.default_rng(1)
    strings = rng.integers(0, 2, (clients, bits), np.uint8)
    common = rng.integers(0, 2, (frequent, bits), np.uint8)
    chosen = rng.integers(0, frequent * 5 // 4, clients)
    strings[chosen < frequent] = common[chosen[chosen < frequent]]
    weights = np.where(chosen < frequent, 8 + chosen % 8, 1)
    plan = MasticHeavyHitters.calibrated(
        mastic_sum(bits, 15),
        bits_per_level=bits_per_level,
        threshold=clients // 6,
        max_prefixes=frequent,
        epsilon=8.0,
        delta=1e-6,
    )
    start = time.process_time()
    reports = plan.mastic.shard(strings, weights)
    sharding = time.process_time() - start
    start = time.process_time()
    sides = [plan.aggregator(KEY, j, UsedVerifyKeys()) for j in range(2)]
    for j, side in enumerate(sides):
        side.receive(reports.nonces, reports.public_shares, reports.input_shares[j])
    answer = plan.run(sides)
    spent = time.process_time() - start
    truth = {"".join(map(str, string)) for string in common.tolist()}
    print(
        f"  Mastic, {bits} bits by {bits_per_level}, {clients:,} reports, top {frequent} by weight: "
        f"{spent:.1f} s for both aggregators, clients {sharding:.1f} s; "
        f"{len(truth & set(answer.found))} of {frequent} found at epsilon 8, noise {answer.stddev:.1f}"
    )
