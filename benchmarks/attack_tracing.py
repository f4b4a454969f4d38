"""Tracing in aggregates: CPU time beside one sum of the same bits, and power beside what theory predicts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from sfumato import attacks
from sfumato.attacks.tracing.attribute_rows import row_sums
from sfumato.attacks.tracing.predicted_power import Statistic

__all__ = ["rows"]

PEOPLE: Final = 10_000
ATTRIBUTES: Final = 100_000
STATISTICS: Final[tuple[Statistic, ...]] = ("likelihood-ratio", "homer", "inner-product")


def rows(options: Any = None) -> Iterator[list[str]]:
    """Yield CPU seconds of scores of 10,000 packed rows, then powers of small aggregates over 20 seeds."""
    yield ["scores", "CPU s", "over a sum", "limit"]
    generator = np.random.default_rng(1)
    bits = generator.integers(0, 256, (PEOPLE, ATTRIBUTES // 8), dtype=np.uint8)
    packed = attacks.PackedBits(bits, ATTRIBUTES)
    floor, counts = _timed(lambda: row_sums("rows", packed))
    for statistic in STATISTICS:
        attack = attacks.Tracing(
            targets=packed, members=PEOPLE, frequencies=np.full(ATTRIBUTES, 0.5), statistic=statistic
        )
        seconds, _ = _timed(lambda attack=attack: attack.scores(counts))  # type: ignore[misc]
        yield [f"{statistic}, 1e4 x 1e5", f"{seconds:.2f}", f"{seconds / floor:.1f}", "10 s"]
    yield ["power at 5 %, 60 members", "seen", "predicted", "exact"]
    for statistic in STATISTICS:
        for attributes in (100, 300):
            yield _power(statistic, attributes)


def _power(statistic: Statistic, attributes: int) -> list[str]:
    frequencies = np.linspace(0.1, 0.5, attributes)
    predicted = attacks.tracing_power(statistic, frequencies, members=60, false_positive_rate=0.05)
    cut = predicted.threshold
    hits = 0
    for seed in range(20):
        people = np.random.default_rng(seed).random((60, attributes)) < frequencies
        attack = attacks.Tracing(targets=people, members=60, frequencies=frequencies, statistic=statistic)
        hits += int((attack.scores(people.sum(axis=0)) > cut).sum())
    ends = f"{predicted.power.lower:.3f}-{predicted.power.upper:.3f}"
    return [f"{statistic}, {attributes} attributes", f"{hits / 1200:.3f}", ends, str(predicted.exact)]


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result
