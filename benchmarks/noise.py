"""Exact noise against numpy's inexact noise, whether the time of a draw tells its value; noise for training.

Speeds are draws per second of CPU time in the best of several runs, source words included. The first call at
a scale also builds its table, which is shown apart.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics import _kernels, discrete_gaussian, discrete_laplace
from sfumato.numerics.sampling.plans import gaussian_plan, laplace_plan

__all__ = ["main", "measure_speed", "measure_timing", "measure_training"]

SCALES = (1, 1_000, 1_000_000)
DISTRIBUTIONS: dict[str, tuple[Callable[..., Any], Callable[[Fraction], object]]] = {
    "laplace": (discrete_laplace, laplace_plan),
    "gaussian": (discrete_gaussian, gaussian_plan),
}


def best_seconds(work: Callable[[], object], runs: int) -> float:
    """CPU seconds of the best run."""
    best = float("inf")
    for _ in range(runs):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def measure_speed(count: int, runs: int) -> None:
    """Print speeds, by distribution, scale and instruction set, as multiples of numpy's."""
    generator = np.random.default_rng(1)
    floors = {
        "laplace": best_seconds(lambda: generator.laplace(size=count), runs),
        "gaussian": best_seconds(lambda: generator.normal(size=count), runs),
    }
    print(f"numpy {np.__version__} Generator, one core, million draws/s (not private):")
    print(f"laplace {count / floors['laplace'] / 1e6:.0f}, normal {count / floors['gaussian'] / 1e6:.0f}\n")
    print(f"{'exact distribution':<12}{'scale':>9}{'kernel':>11}{'M/s':>7}{'x numpy':>9}{'table, ms':>11}")
    for distribution, (sample, plan) in DISTRIBUTIONS.items():
        for scale in SCALES:
            # Unwrapped, the plan is built without its cache: what a first call pays.
            table = best_seconds(partial(inspect.unwrap(plan), Fraction(scale)), 5)
            for variant in _kernels.variants():
                _kernels.use(variant)
                seconds = best_seconds(partial(sample, scale, count), runs)
                line = f"{distribution:<12}{scale:>9}{variant:>11}{count / seconds / 1e6:>7.0f}"
                print(f"{line}{floors[distribution] / seconds:>9.2f}{1e3 * table:>11.1f}", flush=True)


def ranks(values: NDArray[np.int64]) -> NDArray[np.float64]:
    """Ranks, ties sharing their mean."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean: NDArray[np.float64] = np.cumsum(counts) - (counts - 1) / 2
    return mean[place]


def measure_timing(releases: int) -> None:
    """Print Spearman's correlation between the time of one release and its magnitude."""
    print(
        f"\nTime of one release against |noise|, {releases} releases each; chance alone: {releases**-0.5:.3f}"
    )
    print(f"{'exact distribution':<12}{'scale':>9}{'median, us':>12}{'Spearman':>10}")
    for distribution, (sample, _) in DISTRIBUTIONS.items():
        for scale in SCALES:
            times, values = np.empty(releases, np.int64), np.empty(releases, np.int64)
            sample(scale)
            for i in range(releases):
                start = time.perf_counter_ns()
                value = sample(scale)
                times[i] = time.perf_counter_ns() - start
                values[i] = value
            spearman = float(np.corrcoef(ranks(times), ranks(np.abs(values)))[0, 1])
            print(f"{distribution:<12}{scale:>9}{np.median(times) / 1e3:>12.1f}{spearman:>10.3f}", flush=True)


def measure_training(count: int, runs: int) -> None:
    """Print speeds of noise that is added to a float32 tensor, interleaved, on one thread."""
    import torch  # noqa: PLC0415  # an optional library

    from sfumato.learning.noise.grid import GridNoise  # noqa: PLC0415  # needs it
    from sfumato.learning.noise.keyed import KeyedNoise  # noqa: PLC0415

    torch.set_num_threads(1)
    gradient = torch.zeros(count)
    keyed, grid = KeyedNoise(), GridNoise()
    works: dict[tuple[str, str], Callable[[], object]] = {
        ("torch.randn alone", ""): lambda: torch.randn(count),
        ("torch.randn, added", ""): lambda: gradient.add_(torch.randn_like(gradient), alpha=1.1),
    }
    for variant in _kernels.variants():
        works["KeyedNoise", variant] = lambda: keyed.add_([gradient], step=0, stddevs=[1.1])
    for variant in _kernels.variants():
        works["GridNoise", variant] = lambda: grid.add_([gradient], step=0, stddevs=[1.1])
    best = dict.fromkeys(works, float("inf"))
    for _ in range(runs):
        for (name, variant), work in works.items():
            _kernels.use(variant or "portable")
            best[name, variant] = min(best[name, variant], best_seconds(work, 1))
    floor = best["torch.randn, added", ""]
    print(f"\nNoise added to {count} float32, torch {torch.__version__}, one thread")
    print(f"{'noise':<20}{'kernel':>11}{'M/s':>7}{'x torch':>9}")
    for (name, variant), seconds in best.items():
        print(f"{name:<20}{variant:>11}{count / seconds / 1e6:>7.0f}{floor / seconds:>9.2f}", flush=True)


def main(argv: Sequence[str]) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks noise", description=__doc__)
    parser.add_argument("--count", type=int, default=1 << 20, help="draws per run")
    parser.add_argument("--runs", type=int, default=15, help="runs, of which the best counts")
    parser.add_argument("--releases", type=int, default=40_000, help="single releases that are timed")
    options = parser.parse_args(argv)
    measure_speed(options.count, options.runs)
    measure_timing(options.releases)
    if importlib.util.find_spec("torch") is not None:
        measure_training(options.count, options.runs)
