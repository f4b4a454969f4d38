"""What the mechanisms take beside a floor that protects nobody, in one run.

CPU milliseconds of the best of several runs, randomness included. A row is a function with `row`: it prepares
what is measured, and returns the work and its floor.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from sfumato.mechanisms import (
    BandedToeplitz,
    BinaryTree,
    BufferedToeplitz,
    ContinualSum,
    Exponential,
    NoisyMax,
    PermuteAndFlip,
    Quantile,
    Quantiles,
    SparseVector,
    SquareRoot,
    Strategy,
    TopK,
)

__all__ = ["ROWS", "Measured", "main", "row"]

MILLION: Final = 1_000_000
STEPS: Final = 100_000


class Measured(NamedTuple):
    """What is measured: the work, and the least that could do it without privacy."""

    work: Callable[[], object]
    floor: Callable[[], object] | None = None


class Row(NamedTuple):
    """One line of the table; limits are in milliseconds, or in times the floor."""

    title: str
    prepare: Callable[[], Measured]
    milliseconds: float | None
    ratio: float | None


ROWS: list[Row] = []


def row(
    title: str, *, milliseconds: float | None = None, ratio: float | None = None
) -> Callable[[Callable[[], Measured]], Callable[[], Measured]]:
    """Add a row to the table, with the limit that its issue states."""

    def add(prepare: Callable[[], Measured]) -> Callable[[], Measured]:
        ROWS.append(Row(title, prepare, milliseconds, ratio))
        return prepare

    return add


def scores() -> np.ndarray:
    """Return a million real scores."""
    return np.random.default_rng(1).normal(size=MILLION) * 100


def softmax(values: np.ndarray) -> int:
    """Choose in floats: what everybody writes, and what the exact choice is compared with."""
    weights = np.exp(values - values.max()).cumsum()
    return int(np.searchsorted(weights, weights[-1] * 0.5))


@row("exponential mechanism, 1e6 real scores", milliseconds=50)
def exponential() -> Measured:
    """Against a float softmax and a search."""
    values, mechanism = scores(), Exponential(sensitivity=1.0, scale=2.0)
    return Measured(lambda: mechanism.release(values), lambda: softmax(values / 2))


@row("exponential mechanism, 1e6 whole scores", milliseconds=50)
def exponential_of_counts() -> Measured:
    """Against the same in floats."""
    values, mechanism = scores().astype(np.int64), Exponential(sensitivity=1, scale=2)
    return Measured(lambda: mechanism.release(values), lambda: softmax(values / 2))


@row("permute-and-flip, 1e6 whole scores")
def permute_and_flip() -> Measured:
    """Against exponential noise in floats."""
    values, mechanism = scores().astype(np.int64), PermuteAndFlip(sensitivity=1, scale=2)
    generator = np.random.default_rng(2)
    return Measured(
        lambda: mechanism.release(values),
        lambda: int(np.argmax(values + generator.exponential(2, MILLION))),
    )


@row("noisy maximum, Laplace, 1e6 whole scores")
def noisy_max() -> Measured:
    """Against Laplace noise in floats."""
    values, mechanism = scores().astype(np.int64), NoisyMax(sensitivity=1, scale=2)
    generator = np.random.default_rng(2)
    return Measured(
        lambda: mechanism.release(values),
        lambda: int(np.argmax(values + generator.laplace(0, 2, MILLION))),
    )


@row("top 100 of 1e6 whole scores")
def top_k() -> Measured:
    """Against Gumbel noise in floats."""
    values, mechanism = scores().astype(np.int64), TopK(sensitivity=1, scale=2, count=100)
    generator = np.random.default_rng(2)

    def floor() -> object:
        noisy = values + generator.gumbel(0, 2, MILLION)
        best = np.argpartition(noisy, -100)[-100:]
        return best[np.argsort(noisy[best])]

    return Measured(lambda: mechanism.release(values), floor)


def column() -> np.ndarray:
    """Return ten million real numbers from 0 to 1."""
    return np.random.default_rng(1).random(10 * MILLION)


@row("median of 1e7 numbers", ratio=1.5)
def median() -> Measured:
    """Against a sort."""
    values, mechanism = column(), Quantile(bounds=(0.0, 1.0), epsilon=1.0)
    return Measured(lambda: mechanism.release(values), lambda: np.sort(values))


@row("1,000 quantiles of 1e7 numbers")
def quantiles() -> Measured:
    """Against a sort."""
    values, wanted = column(), [(k + 1) / 1001 for k in range(1000)]
    mechanism = Quantiles(quantiles=wanted, bounds=(0.0, 1.0), epsilon=1.0)
    return Measured(lambda: mechanism.release(values), lambda: np.sort(values))


@row("sparse vector, 1e7 queries", milliseconds=2000)
def sparse_vector() -> Measured:
    """Against Laplace noise in floats and a search."""
    values = np.zeros(10 * MILLION, np.int64)
    mechanism = SparseVector.calibrated(sensitivity=1, epsilon=1.0, threshold=10_000, positives=3)
    generator = np.random.default_rng(2)

    def floor() -> object:
        parts = np.split(values, 160)
        return [np.flatnonzero(part + generator.laplace(0, 8, len(part)) >= 10_000) for part in parts]

    return Measured(lambda: mechanism.release(values), floor)


def sums_so_far(strategy: Strategy) -> Measured:
    """Against the running sum of values with noise of their own, whose error grows with the steps."""
    mechanism = ContinualSum.calibrated(strategy=strategy, sensitivity=1, epsilon=1.0, delta=1e-6)
    generator, values = np.random.default_rng(2), np.ones(STEPS, dtype=np.int64)
    return Measured(
        lambda: mechanism.release(values),
        lambda: np.cumsum(values + generator.normal(0, 5, STEPS)),
    )


@row("1e5 sums so far, tree")
def tree() -> Measured:
    """Exact noise on 2e5 blocks, refined."""
    return sums_so_far(BinaryTree(steps=STEPS))


@row("1e5 sums so far, square root")
def square_root() -> Measured:
    """Exact products with 1e5 coefficients."""
    return sums_so_far(SquareRoot(steps=STEPS))


@row("1e5 sums so far, 32 bands")
def bands() -> Measured:
    """Exact products with 32 coefficients."""
    return sums_so_far(BandedToeplitz.optimal(steps=STEPS, bands=32))


@row("1e4 sums so far, one by one, tree")
def one_by_one() -> Measured:
    """As a stream: a release with its error for every step."""
    mechanism = ContinualSum(strategy=BinaryTree(steps=STEPS), sensitivity=1, stddev=20)
    generator = np.random.default_rng(2)

    def work() -> None:
        stream = mechanism.stream()
        for _ in range(STEPS // 10):
            stream.send(1)

    def floor() -> float:
        total = 0.0
        for _ in range(STEPS // 10):
            total += 1 + generator.normal(0, 5)
        return total

    return Measured(work, floor)


@row("correlated noise for 1e6 parameters, one step")
def buffers() -> Measured:
    """Four buffers for training, whatever the number of steps; against fresh noise alone."""
    stream = BufferedToeplitz.optimal(steps=2000, buffers=4).noise()
    generator = np.random.default_rng(2)

    def fresh() -> np.ndarray:
        return generator.normal(size=MILLION)

    return Measured(lambda: stream.send(fresh), fresh)


def best_milliseconds(work: Callable[[], object], runs: int) -> float:
    """CPU milliseconds of the best run."""
    best = float("inf")
    for _ in range(runs):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return 1e3 * best


def main(argv: Sequence[str]) -> int:
    """Run from the command line; 1 where a limit is passed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks mechanisms", description=__doc__)
    parser.add_argument("--runs", type=int, default=9, help="runs, of which the best counts")
    parser.add_argument("--only", default="", help="rows whose title holds this")
    options = parser.parse_args(argv)
    missed = 0
    print(f"{'':<44}{'ms':>9}{'floor, ms':>11}{'ratio':>8}{'limit':>9}")
    for line in ROWS:
        if options.only not in line.title:
            continue
        measured = line.prepare()
        taken = best_milliseconds(measured.work, options.runs)
        floor = best_milliseconds(measured.floor, options.runs) if measured.floor else float("nan")
        limit = f"{line.milliseconds:g} ms" if line.milliseconds else f"{line.ratio}x" if line.ratio else ""
        over = (line.milliseconds and taken > line.milliseconds) or (
            line.ratio and taken > line.ratio * floor
        )
        missed += bool(over)
        shown = f"{line.title:<44}{taken:>9.1f}{floor:>11.1f}{taken / floor:>8.2f}{limit:>9}"
        print(shown + ("  missed" if over else ""), flush=True)
    return int(missed > 0)
