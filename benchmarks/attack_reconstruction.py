"""Reconstruction from linear queries: bits found beside theory, CPU time beside numpy's normal equations."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from sfumato import attacks
from sfumato.attacks.reconstruction.linear_reconstruction import Method

__all__ = ["rows"]

METHODS: Final[tuple[Method, ...]] = ("least-squares", "bounded-least-squares", "l1")


def rows(options: Any = None) -> Iterator[list[str]]:
    """Yield shares of bits found: of 2,000 from 16,000 answers, and of 100 from 500 by each method."""
    yield ["2,000 bits, 16,000 answers", "found", "theory", "CPU s", "limit", "numpy CPU s"]
    generator = np.random.default_rng(1)
    queries = attacks.random_subset_queries(2000, 16_000, generator)
    secret = generator.random(2000) < 0.5
    for stddev in (11.2, 22.4, 44.7):
        answers = queries @ secret + generator.normal(0, stddev, 16_000)
        found, seconds = _found("least-squares", queries, secret, answers)
        start = time.process_time()
        np.linalg.solve(queries.T @ queries, queries.T @ answers.astype(np.float32))
        plain = time.process_time() - start
        law = attacks.reconstruction_accuracy(2000, 16_000, stddev)
        cells = [f"{found:.4f}", f"{law:.4f}", f"{seconds:.2f}", "2 s", f"{plain:.2f}"]
        yield [f"noise {stddev}", *cells]
    yield ["100 bits, 500 answers, 10 trials", "least squares", "within bounds", "l1"]
    for stddev in (2.5, 5.0, 10.0, 20.0):
        trials = []
        for _ in range(10):
            queries = attacks.random_subset_queries(100, 500, generator)
            secret = generator.random(100) < 0.5
            trials.append((queries, secret, queries @ secret + generator.normal(0, stddev, 500)))
        shares = [np.mean([_found(method, *trial)[0] for trial in trials]) for method in METHODS]
        yield [f"noise {stddev}", *(f"{share:.3f}" for share in shares)]


def _found(method: Method, queries: Any, secret: Any, answers: Any) -> tuple[float, float]:
    start = time.process_time()
    found = attacks.LinearReconstruction(queries=queries, method=method).run(answers, truth=secret)
    return found.numbers["accuracy"], time.process_time() - start
