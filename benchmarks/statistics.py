"""Errors, widths and sizes of statistics, each beside the best alternative in the same run.

Means: the width and the coverage of intervals from one release of `Variance`, over the central 95 % of the
error of the mean that the same three numbers give. Tests: how often a true mean is refused at 5 %. Selection:
how many of the ten most frequent keys are listed, where a unit has so many keys. Slopes: their error.
Proportions, ranks, slope-tests, variances and quantile-intervals: sizes, powers and coverages, in
`benchmarks.hypothesis_tests`.

``python -m benchmarks statistics [--runs N] [--part NAME]``
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks import hypothesis_tests
from sfumato.mechanisms import (
    Laplace,
    StabilityHistogram,
    TheilSen,
    TopK,
    UnknownDomainTopK,
    Variance,
    t_interval,
    t_test,
)

__all__ = ["main"]

BOUNDS = (0.0, 100.0)
POPULATIONS: dict[str, tuple[float, Callable[[np.random.Generator, int], NDArray[np.float64]]]] = {
    "normal, deviation 10": (50.0, lambda rng, n: rng.normal(50, 10, n)),
    "normal, deviation 20": (50.0, lambda rng, n: rng.normal(50, 20, n)),
    "normal, deviation 3": (30.0, lambda rng, n: rng.normal(30, 3, n)),
    "exponential, mean 10": (10.0 * (1 - np.exp(-10)), lambda rng, n: rng.exponential(10, n)),
}
DRAWS = 399


def means(runs: int) -> Iterator[list[str]]:
    """Yield widths and coverages of intervals for means."""
    yield ["population", "n", "central 95 % of the error", "t_interval", "covers", "mean_interval", "covers"]
    query, rng = Variance(bounds=BOUNDS), np.random.default_rng(1)
    noisy = Laplace.for_query(query, epsilon=1.0)
    for name, (truth, sample) in POPULATIONS.items():
        for n in (50, 200, 2000):
            ends, errors = np.zeros((runs, 2, 2)), np.zeros(runs)
            for run in range(runs):
                release = noisy.release(np.clip(sample(rng, n), *BOUNDS), rng)
                high, cross, low = np.asarray(release.value)
                errors[run] = 100 * (high + cross / 2) / max(high + cross + low, 2) - truth
                ends[run, 0] = t_interval(release, draws=DRAWS, rng=rng)[:2]
                ends[run, 1] = query.mean_interval(release)[:2]
            central = float(np.diff(np.quantile(errors, [0.025, 0.975]))[0])
            widths = np.median(ends[..., 1] - ends[..., 0], axis=0)
            covers = ((ends[..., 0] <= truth) & (truth <= ends[..., 1])).mean(axis=0)
            cells = [f"{w:.2f} ({w / central:.2f})" for w in widths]
            yield [name, str(n), f"{central:.2f}", cells[0], f"{covers[0]:.3f}", cells[1], f"{covers[1]:.3f}"]


def sizes(runs: int) -> Iterator[list[str]]:
    """Yield how often true means are refused."""
    yield ["population", *(f"n = {n}" for n in (20, 50, 200, 2000))]
    noisy, rng = Laplace.for_query(Variance(bounds=BOUNDS), epsilon=1.0), np.random.default_rng(2)
    for name, (truth, sample) in POPULATIONS.items():
        row = []
        for n in (20, 50, 200, 2000):
            releases = (noisy.release(np.clip(sample(rng, n), *BOUNDS), rng) for _ in range(runs))
            values = [t_test(one, mean=truth, draws=DRAWS, rng=rng).p_value for one in releases]
            row.append(f"{np.mean(np.array(values) <= 0.05):.3f}")
        yield [name, *row]


def selections(runs: int) -> Iterator[list[str]]:
    """Yield the share of the ten most frequent keys of 500 by Zipf that are listed."""
    yield ["keys a unit", "`TopK`", "Gumbel", "Laplace", "`UnknownDomainTopK`", "Gumbel", "histogram"]
    shares = 1 / np.arange(1, 501)
    counts = np.round(1000 * shares / shares.sum()).astype(np.int64)
    keys, rng = {key: int(count) for key, count in enumerate(counts)}, np.random.default_rng(3)
    for l0 in (1, 2, 3, 5, 10, 30):
        listed = [
            TopK.calibrated(sensitivity=1, epsilon=1.0, count=10, l0=l0, monotone=True, noise=noise)
            for noise in (None, "gumbel", "laplace")
        ]
        row = [np.mean([_recall(one) for one in each.outputs(counts, runs, rng)]) for each in listed]
        unknown = [
            UnknownDomainTopK.calibrated(epsilon=1.0, delta=1e-6, count=10, l0=l0, noise=noise)
            for noise in (None, "gumbel")
        ]
        row += [np.mean([_recall(each.release(keys, rng).value) for _ in range(runs)]) for each in unknown]
        histogram = StabilityHistogram.calibrated(epsilon=1.0, delta=1e-6, l0=l0)
        row.append(np.mean([_recall(tuple(one)[:10]) for one in histogram.outputs(keys, runs, rng)]))
        yield [str(l0), *(f"{share:.2f}" for share in row)]


def slopes(runs: int) -> Iterator[list[str]]:
    """Yield the errors of a slope of 0.5, with features from 0 to 10 and residuals of deviation 2."""
    yield ["records", "`TheilSen`", "with one matching", "no privacy"]
    rng, bounds = (
        np.random.default_rng(4),
        {"slope_bounds": (-10.0, 10.0), "intercept_bounds": (-100.0, 100.0)},
    )
    for n in (200, 1000, 10_000):
        errors = np.zeros((min(runs, 200), 3))
        for run in errors:
            x = rng.uniform(0, 10, n)
            data = np.stack([x, 3 + 0.5 * x + rng.normal(0, 2, n)], axis=1)
            for place, matchings in enumerate((None, 1)):
                mechanism = TheilSen(**bounds, epsilon=2.0, matchings=matchings)  # type: ignore[arg-type]
                run[place] = mechanism.release(data, rng).value.slopes[0] - 0.5
            run[2] = np.polyfit(x, data[:, 1], 1)[0] - 0.5
        yield [str(n), *(f"{error:.4f}" for error in np.sqrt((errors**2).mean(axis=0)))]


def _recall(listed: Sequence[object]) -> float:
    return len({key for key in listed if isinstance(key, int) and key < 10}) / 10


PARTS = {
    "means": means,
    "tests": sizes,
    "selection": selections,
    "slopes": slopes,
    "proportions": hypothesis_tests.proportions,
    "ranks": hypothesis_tests.ranks,
    "slope-tests": hypothesis_tests.slope_tests,
    "variances": hypothesis_tests.variances,
    "quantile-intervals": hypothesis_tests.quantile_intervals,
}


def main(argv: Sequence[str]) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks statistics", description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--part", choices=sorted(PARTS))
    given = parser.parse_args(argv)
    for name, table in PARTS.items():
        if given.part in (None, name):
            print(f"\n{name}, {given.runs} runs")
            for number, row in enumerate(table(given.runs)):
                print("| " + " | ".join(row) + " |", flush=True)
                if not number:
                    print("|" + " --- |" * len(row))
    return 0
