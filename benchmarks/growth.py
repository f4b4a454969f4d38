"""How strategies and streams grow with their size, each beside a floor or another way in the same run.

CPU seconds on one thread; the floor is what any way would have to compute, or the simplest way to do it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
from scipy.signal import fftconvolve

from sfumato.mechanisms import (
    BinaryTree,
    BufferedToeplitz,
    ContinualSum,
    KroneckerMechanism,
    LinearWorkload,
    LowerTriangular,
    MatrixMechanism,
    PureContinualSum,
    SquareRoot,
    SumStream,
    optimal_strategy,
)
from sfumato.numerics.blas_threads import one_thread

__all__ = ["growth"]

STEPS = 1_000_000


def growth(runs: int) -> Iterator[list[str]]:
    """Yield CPU seconds beside those of a floor or of another way, the best of up to three runs."""
    repeats = min(3, runs)
    yield ["what", "CPU seconds", "beside", "CPU seconds", "ratio"]
    for what, ours, beside, floor in _rows():
        found = [(_seconds(ours), _seconds(floor)) for _ in range(repeats)]
        mine, other = (min(pair[side] for pair in found) for side in (0, 1))
        yield [what, f"{mine:.2f}", beside, f"{other:.2f}", f"{mine / other:.2f}"]
    million = BufferedToeplitz.optimal(steps=STEPS)
    root = SquareRoot(steps=STEPS).max_error()
    error = million.max_error()
    yield [
        f"error of {len(million.decays)} chosen buffers, {STEPS:,} steps",
        f"{error:.4f}",
        "square root, all steps retained",
        f"{root:.4f}",
        f"{error / root:.5f}",
    ]


def _rows() -> Iterator[tuple[str, Callable[[], object], str, Callable[[], object]]]:
    prefixes, large = np.tril(np.ones((400, 400))), np.tril(np.ones((1000, 1000)))
    dense = LinearWorkload(matrix=prefixes)
    yield (
        "`KroneckerMechanism.calibrated`, 400 prefixes",
        lambda: KroneckerMechanism.calibrated(factors=[prefixes], epsilon=1.0, delta=1e-6),
        "`MatrixMechanism.calibrated`",
        lambda: MatrixMechanism.calibrated(workload=dense, epsilon=1.0, delta=1e-6),
    )
    factors = [large, np.eye(100), np.ones((1, 50))]
    yield (
        "the same, 1,000 prefixes by 100 cells by a total of 50",
        lambda: KroneckerMechanism.calibrated(factors=factors, epsilon=1.0, delta=1e-6),
        "ten eigendecompositions of 1,000 cells",
        lambda: [np.linalg.eigh(large.T @ large) for _ in range(10)],
    )
    longest = np.tril(np.ones((2048, 2048)))
    yield (
        "`LowerTriangular.optimal`, 2,048 steps",
        lambda: LowerTriangular.optimal(steps=2048),
        "one singular value decomposition",
        lambda: np.linalg.svd(longest),
    )
    uneven = np.random.default_rng(1).normal(size=(300, 300))
    yield (
        "`optimal_strategy`, 300 uneven cells",
        lambda: optimal_strategy(uneven),
        "ten eigendecompositions",
        lambda: [np.linalg.eigh(uneven.T @ uneven) for _ in range(10)],
    )
    yield (
        f"`BufferedToeplitz.optimal`, {STEPS:,} steps",
        lambda: BufferedToeplitz.optimal(steps=STEPS),
        "one evaluation of its error by series",
        BufferedToeplitz(steps=STEPS, decays=(0.9, 0.5), weights=(0.2, 0.2)).max_error,
    )
    yield from _streams()


def _streams() -> Iterator[tuple[str, Callable[[], object], str, Callable[[], object]]]:
    root, tree = SquareRoot(steps=STEPS), BinaryTree(steps=STEPS)
    gaussian = ContinualSum.calibrated(strategy=root, sensitivity=1, epsilon=1.0, delta=1e-6)
    pure = PureContinualSum.calibrated(strategy=tree, sensitivity=1, epsilon=1.0)
    coefficients, values = root.coefficients(), np.ones(STEPS)
    yield (
        f"square root stream, {STEPS:,} steps in blocks of 1,000",
        lambda: _in_blocks(gaussian.stream(rng=1)),
        "two products of floats, all steps at once",
        lambda: [fftconvolve(coefficients, values) for _ in range(2)],
    )
    yield (
        "the same, the first 100,000 steps one by one",
        lambda: _one_by_one(gaussian.stream(rng=1)),
        "the first 100,000 in blocks",
        lambda: _in_blocks(gaussian.stream(rng=1), 100_000),
    )
    yield (
        "`PureContinualSum`, the first 100,000 of a million steps one by one",
        lambda: _one_by_one(pure.stream(rng=1)),
        "as many additions of numbers from an array",
        lambda: [float(value) + 1.0 for value in values[:100_000]],
    )


def _in_blocks(stream: SumStream, steps: int = STEPS) -> None:
    block = np.full(1000, 3)
    for _ in range(steps // 1000):
        stream.send_many(block)


def _one_by_one(stream: SumStream) -> None:
    for _ in range(100_000):
        stream.send(3)


def _seconds(work: Callable[[], object]) -> float:
    with one_thread():
        started = time.process_time()
        work()
        return time.process_time() - started
