"""How much of an epsilon an audit certifies, beside the published figures of DP-Sniper.

The first table has the algorithms of DP-Sniper's evaluation (Bichsel, Steffen, Bogunovic, Vechev, "DP-Sniper:
black-box discovery of differential privacy violations using classifiers", S&P 2021), all at epsilon 0.1,
each on the pair of inputs that DP-Sniper found best. They are written anew from the papers that they come
from: the sparse vector algorithms 1 to 6 of Lyu, Su and Li (2017), the noisy maxima and histograms of Ding
et al. (2018), prefix sums and numerical sparse vector of Wang et al. (2019), the finite geometric mechanism
of Balcer and Vadhan (2018), RAPPOR of Erlingsson et al. (2014). Nothing but outputs is given to the audit.

DP-Sniper's column is quoted: ``eps_lcb`` of the logistic regression in the reference results of its authors'
repository (``eth-sri/dp-sniper``, ``eval_sp2021/reference-results/dd_search_reg_data.log``), from 2e8 final
runs on each input.

The second table is of our own mechanisms, on the pairs that the audit knows for them.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.audit import audit
from sfumato.mechanisms import (
    Exponential,
    Gaussian,
    Laplace,
    Mechanism,
    NoisyMax,
    PermuteAndFlip,
    SparseVector,
)

__all__ = ["main"]

EPSILON = 0.1
GENERATOR = np.random.default_rng(20261128)
Run = Callable[[Any, int], NDArray[Any]]


@dataclass(frozen=True)
class Published:
    """An algorithm, the pair on which it is run, its epsilon there, and what DP-Sniper certified."""

    run: Run
    first: Any
    second: Any
    epsilon: float | None  # on this pair; None where nobody has stated it
    dp_sniper: float


def laplace(scale: float, *shape: int) -> NDArray[np.float64]:
    return GENERATOR.laplace(0.0, scale, shape)


def maximum(noise: Callable[..., NDArray[np.float64]], *, index: bool) -> Run:
    """The largest of noisy answers, or its index."""

    def run(answers: Any, size: int) -> NDArray[Any]:
        noisy = answers + noise(2 / EPSILON, (size, len(answers)))
        return np.asarray(noisy.argmax(axis=1) if index else noisy.max(axis=1))

    return run


def laplace_of(scale: float, shape: tuple[int, int]) -> NDArray[np.float64]:
    return GENERATOR.laplace(0.0, scale, shape)


def noisy_counts(scale: float) -> Run:
    return lambda counts, size: counts + laplace(scale, size, len(counts))


def prefix_sums(answers: Any, size: int) -> NDArray[Any]:
    return np.asarray((answers + laplace(1 / EPSILON, size, len(answers))).cumsum(axis=1))


def finite_geometric(count: int, size: int) -> NDArray[Any]:
    """A count from 0 to 5, by integers that a finite computer can draw (Balcer and Vadhan, Algorithm 4.8)."""
    most, power = 5, 2 ** math.ceil(math.log(2 / EPSILON))
    whole = (2 * power + 1) * (power + 1) ** (most - 1)
    below = [power ** (count - z) * (power + 1) ** (most - (count - z)) for z in range(count)]
    above = [
        whole - power ** (z - count + 1) * (power + 1) ** (most - 1 - (z - count)) for z in range(count, most)
    ]
    return np.searchsorted([*below, *above], GENERATOR.integers(1, whole + 1, size), side="left")


def sparse_vector(
    *,
    at: float = 1.0,
    share: float = 0.5,
    query: float | None = 1.0,
    stops: bool = True,
    positives: int = 1,
    numbers: str = "",
) -> Run:
    """So many positive answers at most; ``query`` over the epsilon of queries is the scale of their noise.

    Answers are 1 and 0, -1 after the end. With numbers a positive answer is the noisy one ("same", for which
    another 1000 below stand for no and the end) or one with fresh noise ("fresh").
    """

    def run(answers: Any, size: int) -> NDArray[Any]:
        first, rest = share * EPSILON, (1 - share) * EPSILON
        if numbers == "fresh":
            first, rest = EPSILON / 3, EPSILON / 3
        columns = len(answers)
        threshold = at + laplace(1 / first, size, 1)
        noisy = answers + (0.0 if query is None else laplace(query / rest, size, columns))
        above = noisy >= threshold
        out = np.where(above, 1.0, 0.0)
        if numbers == "same":
            out = np.where(above, noisy, -1000.0)
        elif numbers == "fresh":
            out = np.where(above, answers + laplace(3 * positives / EPSILON, size, columns), 0.0)
        if stops:
            ended = above.cumsum(axis=1) - above >= positives
            out[ended] = {"": -1.0, "same": -2000.0, "fresh": -1000.0}[numbers]
        return out

    return run


def bits(flipped: float, p: float = 0.0, q: float = 1.0) -> Run:
    """RAPPOR: a permanent randomized response of a Bloom filter of 20 bits, and one of each report."""
    filters = {0: [0, 3, 11, 17], 1: [1, 11, 13, 18]}  # differ in 6 bits, as those of DP-Sniper's best pair

    def run(value: int, size: int) -> NDArray[Any]:
        bloom = np.isin(np.arange(20), filters[value])
        chosen = GENERATOR.random((size, 20))
        permanent = np.where(chosen < flipped, chosen < flipped / 2, bloom)
        return (GENERATOR.random((size, 20)) < np.where(permanent, q, p)).astype(np.int64)

    return run


ONES, HALVES = np.ones(10), np.repeat([2.0, 0.0], 5)
CROSS, CROSSED = np.repeat([0.0, 1.0], 5), np.repeat([1.0, 0.0], 5)
BELOW, RISEN = np.ones(5), np.array([0.0, 2.0, 2.0, 2.0, 2.0])
ONE_COUNT = np.array([0.0, 1.0, 1.0, 1.0, 1.0])

PUBLISHED: dict[str, Published] = {
    "LaplaceMechanism": Published(lambda d, n: d + laplace(1 / EPSILON, n), 1.0, 2.0, 0.1, 0.0968),
    "TruncatedGeometric": Published(finite_geometric, 2, 1, math.log(1 + 2**-3), 0.1155),
    "NoisyHist1": Published(noisy_counts(1 / EPSILON), ONE_COUNT, BELOW, 0.1, 0.0977),
    "NoisyHist2": Published(noisy_counts(EPSILON), ONE_COUNT, BELOW, 10.0, 4.602),
    "ReportNoisyMax1": Published(maximum(laplace_of, index=True), BELOW, RISEN, 0.1, 0.0922),
    "ReportNoisyMax2": Published(maximum(GENERATOR.exponential, index=True), BELOW, RISEN, 0.1, 0.0975),
    "ReportNoisyMax3": Published(maximum(laplace_of, index=False), 0 * BELOW, BELOW, 0.25, 0.2478),
    "ReportNoisyMax4": Published(
        maximum(GENERATOR.exponential, index=False), BELOW, 2 * BELOW, math.inf, 0.3463
    ),
    "SVT1": Published(sparse_vector(at=0.5, query=2.0), CROSS, CROSSED, 0.1, 0.0857),
    "SVT2": Published(sparse_vector(query=2.0), CROSS, CROSSED, 0.1, 0.0859),
    "SVT3": Published(sparse_vector(numbers="same"), ONES, HALVES, math.inf, 0.1715),
    "SVT4": Published(sparse_vector(share=0.25), ONES, HALVES, 0.175, 0.1686),
    "SVT5": Published(sparse_vector(query=None, stops=False), HALVES, ONES, math.inf, 1.7611),
    "SVT6": Published(sparse_vector(stops=False), CROSSED, CROSS, None, 0.2720),
    "RAPPOR": Published(bits(0.75, 0.45, 0.55), 1, 0, 0.3, 0.2929),
    "OneTimeRAPPOR": Published(bits(0.95), 1, 0, 0.6, 0.5977),
    "LaplaceParallel": Published(lambda d, n: d + laplace(200.0, n, 20), 1.0, 0.0, 0.1, 0.0349),
    "PrefixSum": Published(prefix_sums, ONES, 0 * ONES, 1.0, 0.5040),
    "NumericalSVT": Published(
        sparse_vector(query=4.0, positives=2, numbers="fresh"), 2 * ONES, ONES, None, 0.0343
    ),
}

OURS: dict[str, tuple[Mechanism, float]] = {
    "Laplace": (Laplace(sensitivity=1.0, scale=1.0), 0.0),
    "Laplace, 10 entries": (Laplace(sensitivity=1.0, scale=10.0, l0=10), 0.0),
    "Gaussian": (Gaussian.calibrated(sensitivity=1.0, epsilon=1.0, delta=1e-5), 1e-5),
    "Gaussian, 10 entries": (Gaussian.calibrated(sensitivity=1.0, l0=10, epsilon=1.0, delta=1e-5), 1e-5),
    "exponential mechanism": (Exponential.calibrated(sensitivity=1, epsilon=1.0), 0.0),
    "permute-and-flip": (PermuteAndFlip.calibrated(sensitivity=1, epsilon=1.0), 0.0),
    "noisy max": (NoisyMax.calibrated(sensitivity=1, epsilon=1.0), 0.0),
    "sparse vector": (SparseVector.calibrated(sensitivity=1, epsilon=1.0), 0.0),
}


def measure_published(trials: int, scalar: int, only: Sequence[str]) -> None:
    """Print what is certified of the algorithms of DP-Sniper's evaluation."""
    print(f"| algorithm, at {EPSILON:g} | epsilon of the pair | DP-Sniper | sfumato | runs | CPU, s |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, one in PUBLISHED.items():
        if only and name not in only:
            continue
        runs = scalar if np.ndim(one.run(one.first, 1)) == 1 else trials
        started = time.process_time()
        found = audit(one.run, epsilon=EPSILON, pairs=[(one.first, one.second)], trials=runs)
        truth = "" if one.epsilon is None else f"{one.epsilon:.4g}"
        print(
            f"| {name} | {truth} | {one.dp_sniper} | {found.epsilon_lower:.4f} | {runs:.0e} | "
            f"{time.process_time() - started:.1f} |",
            flush=True,
        )


def measure_ours(trials: Sequence[int]) -> None:
    """Print what is certified of our own mechanisms, all at epsilon 1."""
    print(f"\n| mechanism, at 1 | {' | '.join(f'{runs:.0e} runs' for runs in trials)} |")
    print(f"| --- |{' --- |' * len(trials)}")
    for name, (mechanism, delta) in OURS.items():
        found = [audit(mechanism, epsilon=1.0, delta=delta, trials=runs, rng=1) for runs in trials]
        print(f"| {name} | {' | '.join(f'{each.epsilon_lower:.3f}' for each in found)} |", flush=True)


def main(argv: Sequence[str]) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks audit-power", description=__doc__)
    parser.add_argument("--trials", type=int, default=1_000_000, help="runs on each input, of vectors")
    parser.add_argument("--scalar", type=int, default=10_000_000, help="the same, of single numbers")
    parser.add_argument("--only", nargs="*", default=[], help="names of published algorithms")
    parser.add_argument("--ours", type=int, nargs="*", default=[100_000], help="runs of our own mechanisms")
    options = parser.parse_args(argv)
    measure_published(options.trials, options.scalar, options.only)
    if options.ours:
        measure_ours(options.ours)
    return 0
