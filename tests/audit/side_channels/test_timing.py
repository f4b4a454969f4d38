"""The rank correlation, on made-up times; the clock itself is for the benchmarks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.audit import audit_timing
from sfumato.audit.side_channels.timing import spearman
from sfumato.errors import ParameterError
from sfumato.mechanisms import Laplace


def test_the_correlation_is_of_ranks_with_ties_shared() -> None:
    values = np.array([3.0, 1.0, 2.0, 10.0])
    assert spearman(values, np.exp(values)) == 1.0
    assert spearman(values, -(values**3)) == -1.0
    assert spearman(values, np.ones(4)) == 0.0
    # Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: covariance 4.5, variances 4.5 and 5.
    assert abs(spearman(np.array([1.0, 2.0, 2.0, 3.0]), np.arange(4.0)) - 4.5 / (4.5 * 5) ** 0.5) < 1e-12
    generator = np.random.default_rng(1)
    noise = generator.random((2, 10_000))
    assert abs(spearman(noise[0], noise[1])) < 0.07


def test_it_times_single_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock of its own, on which a call takes as long as its noise says, or always as long."""
    generator = np.random.default_rng(1)
    clock = [0]
    monkeypatch.setattr(time, "perf_counter_ns", lambda: clock[0])

    def slow_for_large(data: float) -> list[float]:
        noise = int(generator.geometric(0.01))
        clock[0] += 10 * noise
        return [data + noise]

    def even(data: float) -> float:
        clock[0] += 700
        return data + generator.laplace()

    released = audit_timing(slow_for_large, 5.0, answer=5.0, calls=300)
    assert released.spearman == pytest.approx(1.0)
    assert released.calls == 300
    assert 0 < released.median_seconds < 1e-5
    assert audit_timing(even, 5.0, calls=300).spearman == 0.0
    ours = audit_timing(Laplace(sensitivity=1, scale=2), 10, calls=100, rng=1)
    assert ours.spearman == 0.0, "nothing moved the clock"
    assert "rank correlation" in str(released)


def test_bad_input() -> None:
    refused: list[Callable[[], Any]] = [
        lambda: audit_timing(lambda data: 1.0, 0, calls=5),
        lambda: audit_timing(lambda data: "a", 0, calls=100),
        lambda: audit_timing(3, 0, calls=100),  # type: ignore[arg-type]
    ]
    for bad in refused:
        with pytest.raises(ParameterError, match=" must "):
            bad()
