"""The rank correlation, on made-up times; the clock itself is for the benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.audit import audit_timing
from sfumato.audit.timing import spearman
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


def test_it_times_mechanisms_and_callables() -> None:
    ours = audit_timing(Laplace(sensitivity=1, scale=2), 10, answer=10.0, calls=100, rng=1)
    assert -1 <= ours.spearman <= 1
    assert ours.calls == 100
    assert ours.median_seconds > 0
    assert "rank correlation" in str(ours)
    generator = np.random.default_rng(1)

    def slow_for_large(data: Any) -> list[float]:
        count = int(generator.geometric(0.01))
        return [float(sum(range(20 * count)) * 0 + count)]

    theirs = audit_timing(slow_for_large, None, answer=0.0, calls=300)
    assert theirs.spearman > 0.3


def test_bad_input() -> None:
    refused: list[Callable[[], Any]] = [
        lambda: audit_timing(lambda data: 1.0, 0, calls=5),
        lambda: audit_timing(lambda data: "a", 0, calls=100),
        lambda: audit_timing(3, 0, calls=100),  # type: ignore[arg-type]
    ]
    for bad in refused:
        with pytest.raises(ParameterError, match=" must "):
            bad()
