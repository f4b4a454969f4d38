"""Errors, widths and sizes of statistics, each beside the best alternative in the same run.

Means: the width and the coverage of intervals from one release of `Variance`, over the central 95 % of the
error of the mean that the same three numbers give. Tests: how often a true mean is refused at 5 %. Selection:
how many of the ten most frequent keys are listed, where a unit has so many keys. Slopes, trimmed means,
quantiles, `CoinPress`, for vectors too: their error. Proportions, ranks, slope-tests, variances and
quantile-intervals: sizes, powers and coverages (`benchmarks.hypothesis_tests`). Growth: the CPU time of large
strategies and long streams. The other parts stand in `benchmarks.nonparametric`.

``python -m benchmarks statistics [--runs N] [--part NAME]``
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import hypothesis_tests, nonparametric
from benchmarks.growth import growth
from sfumato.mechanisms import (
    CoinPress,
    CoinPressCovariance,
    CoinPressVectorMean,
    Gaussian,
    JointQuantiles,
    Laplace,
    LeastSquares,
    Quantiles,
    SmoothTrimmedMean,
    StabilityHistogram,
    TheilSen,
    TopK,
    TrimmedMean,
    UnknownDomainTopK,
    Variance,
    t_interval,
    t_test,
)
from sfumato.privacy.neighboring import Neighboring

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
    rng = np.random.default_rng(4)
    bounds: dict[str, Any] = {"slope_bounds": (-10.0, 10.0), "intercept_bounds": (-100.0, 100.0)}
    for n in (200, 1000, 10_000):
        errors = np.zeros((min(runs, 200), 3))
        for run in errors:
            x = rng.uniform(0, 10, n)
            data = np.stack([x, 3 + 0.5 * x + rng.normal(0, 2, n)], axis=1)
            for place, matchings in enumerate((None, 1)):
                relation = Neighboring.REPLACE_ONE
                mechanism = TheilSen(**bounds, epsilon=2.0, matchings=matchings, neighboring=relation)
                run[place] = mechanism.release(data, rng).value.slopes[0] - 0.5
            run[2] = np.polyfit(x, data[:, 1], 1)[0] - 0.5
        yield [str(n), *(f"{error:.4f}" for error in np.sqrt((errors**2).mean(axis=0)))]


def several_slopes(runs: int) -> Iterator[list[str]]:
    """Yield the errors of several slopes, with features from 0 to 10 and residuals of deviation 2."""
    yield [
        "features",
        "records",
        "do not fit",
        "`TheilSen`",
        "`LeastSquares`",
        "no privacy",
    ]
    rng, slopes = np.random.default_rng(9), np.array([0.5, -1.0, 2.0, 0.25])
    for d, n, share in ((2, 1000, 0.0), (2, 1000, 0.1), (4, 1000, 0.1), (4, 10_000, 0.0), (4, 10_000, 0.1)):
        truth, errors = slopes[:d], np.zeros((min(runs, 50), 3))
        robust = TheilSen(
            slope_bounds=[(-10.0, 10.0)] * d,
            intercept_bounds=(-100.0, 100.0),
            epsilon=2.0,
            neighboring=Neighboring.REPLACE_ONE,
        )
        query = LeastSquares(bounds=[(0.0, 10.0)] * d + [(-30.0, 100.0)])
        replace = Neighboring.REPLACE_ONE
        squares = Gaussian.for_query(query, epsilon=2.0, delta=1e-6, neighboring=replace)
        for run in errors:
            x = rng.uniform(0, 10, (n, d))
            y = np.where(rng.random(n) < share, 100.0, 3 + x @ truth + rng.normal(0, 2, n))
            data = np.column_stack([x, y])
            exact = np.linalg.lstsq(np.column_stack([np.ones(n), x]), y, rcond=None)[0][1:]
            found = robust.release(data, rng).value, query.estimate(squares.release(data, rng))
            run[:] = [((each - truth) ** 2).mean() for each in (found[0].slopes, found[1].slopes, exact)]
        yield [str(d), str(n), f"{share:.0%}", *(f"{e:.4f}" for e in np.sqrt(errors.mean(axis=0)))]


def trimmed(runs: int) -> Iterator[list[str]]:
    """Yield the errors of trimmed means of normal records of deviation 1, from bounds of a million."""
    add, replace = "`TrimmedMean`, add/remove", "`TrimmedMean`, replace-one"
    yield ["epsilon", "records", add, replace, "`SmoothTrimmedMean`", "no privacy"]
    rng, wide = np.random.default_rng(5), {"trim": 0.1, "bounds": (-1e6, 1e6)}
    for epsilon, n in ((1.0, 500), (1.0, 1000), (1.0, 5000), (0.2, 5000), (5.0, 200)):
        mechanisms = [
            TrimmedMean(**wide, epsilon=epsilon),  # type: ignore[arg-type]
            TrimmedMean(**wide, epsilon=epsilon, neighboring=Neighboring.REPLACE_ONE),  # type: ignore[arg-type]
            SmoothTrimmedMean.calibrated(**wide, epsilon=epsilon, neighboring=Neighboring.REPLACE_ONE),  # type: ignore[arg-type]
        ]
        errors = np.zeros((min(runs, 400), 4))
        for run in errors:
            data = rng.normal(50, 1, n)
            run[:3] = [mechanism.release(data, rng).value - 50 for mechanism in mechanisms]
            run[3] = np.sort(data)[n // 10 : n - n // 10].mean() - 50
        yield [str(epsilon), str(n), *(f"{error:.4f}" for error in np.sqrt((errors**2).mean(axis=0)))]


def quantiles(runs: int) -> Iterator[list[str]]:
    """Yield the errors of nine deciles of normal records of deviation 1 under replace-one, by bounds."""
    yield ["bounds", "records", "`Quantiles`", "by halving", "`JointQuantiles`"]
    deciles, rng = [k / 10 for k in range(1, 10)], np.random.default_rng(6)
    for top, n in ((100.0, 1000), (1e6, 1000), (1e6, 10_000)):
        given = {"bounds": (-top, top), "epsilon": 1.0, "neighboring": Neighboring.REPLACE_ONE}
        mechanisms = [
            Quantiles(quantiles=deciles, **given),  # type: ignore[arg-type]
            Quantiles(quantiles=deciles, joint=False, **given),  # type: ignore[arg-type]
            JointQuantiles(quantiles=deciles, **given),  # type: ignore[arg-type]
        ]
        errors = np.zeros((min(runs, 100), 3))
        for run in errors:
            data = rng.normal(50, 1, n)
            exact = np.quantile(data, deciles)
            run[:] = [np.abs(each.release(data, rng).value - exact).mean() for each in mechanisms]
        yield [f"{top:g}", str(n), *(f"{error:.4f}" for error in errors.mean(axis=0))]


def unbounded(runs: int) -> Iterator[list[str]]:
    """Yield errors and intervals of `CoinPress` for normal records of deviation 1."""
    error = "rms error"
    yield [
        "bounds",
        "records",
        error,
        "no privacy",
        "central 95 %",
        "normal",
        "covers",
        "sub-gaussian",
        "covers",
    ]
    rng = np.random.default_rng(7)
    for top, n in ((100.0, 200), (100.0, 1000), (1e6, 1000), (1e6, 10_000)):
        found = np.zeros((2, min(runs, 1000), 3))
        for releases, population in zip(found, ("normal", "sub-gaussian"), strict=True):
            mechanism = CoinPress.calibrated(
                epsilon=1.0,
                delta=1e-6,
                bounds=(-top, top),
                stddev=1.0,
                population=population,  # type: ignore[arg-type]
            )
            for run in releases:
                release = mechanism.release(rng.normal(30, 1, n), rng)
                run[:] = release.value - 30, release.interval.lower - 30, release.interval.upper - 30
        central = float(np.diff(np.quantile(found[..., 0], [0.025, 0.975]))[0])
        row = [
            f"+-{top:g}",
            str(n),
            f"{np.sqrt((found[..., 0] ** 2).mean()):.4f}",
            f"{n**-0.5:.4f}",
            f"{central:.3f}",
        ]
        for _, lower, upper in (each.T for each in found):
            row += [
                f"{np.median(upper - lower) / central:.2f}",
                f"{((lower <= 0) & (upper >= 0)).mean():.3f}",
            ]
        yield row


def vectors(runs: int) -> Iterator[list[str]]:
    """Yield errors of means and covariances of normal vectors, beside the paper's algorithms."""
    yield ["what", "columns", "records", "bounds", "add/remove", "replace-one", "the paper's", "no privacy"]
    rng, given = np.random.default_rng(8), {"epsilon": 1.0, "delta": 1e-6}
    relations = (Neighboring.ADD_REMOVE, Neighboring.REPLACE_ONE)
    for d, n, radius in ((10, 2000, 1e4), (50, 2000, 100.0), (50, 10_000, 100.0)):
        means = [
            CoinPressVectorMean.calibrated(**given, columns=d, radius=radius, stddev=1.0, neighboring=each)  # type: ignore[arg-type]
            for each in relations
        ]
        errors = np.zeros((min(runs, 30), 4))
        for run in errors:
            data = rng.normal(radius / 2 / d**0.5, 1, (n, d))
            found = [each.release(data, rng).value for each in means]
            found += [paper_mean(data, radius, means[1].steps, rng), data.mean(axis=0)]
            run[:] = [np.linalg.norm(each - radius / 2 / d**0.5) for each in found]
        yield ["mean", str(d), str(n), f"{radius:g}", *(f"{error:.3f}" for error in errors.mean(axis=0))]
    for d, n, top in ((2, 50_000, 100.0), (10, 50_000, 10.0), (10, 200_000, 10.0)):
        matrices = [
            CoinPressCovariance.calibrated(**given, columns=d, stddevs=(1.0, top), neighboring=each)  # type: ignore[arg-type]
            for each in relations
        ]
        deviations = np.geomspace(1.2, top / 1.2, d)
        errors = np.zeros((min(runs, 10), 4))
        for run in errors:
            data = rng.normal(size=(n, d)) * deviations
            found = [each.release(data, rng).value for each in matrices]
            found += [paper_covariance(data, top, matrices[1].steps, rng), data.T @ data / n]
            run[:] = [np.linalg.norm(each / np.outer(deviations, deviations) - np.eye(d)) for each in found]
        yield ["covariance", str(d), str(n), f"1 to {top:g}", *(f"{e:.3f}" for e in errors.mean(axis=0))]


def paper_mean(
    data: NDArray[np.float64], radius: float, steps: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return the mean by Algorithm 2 of Biswas et al., with float noise and the same budget in rho."""
    (n, d), center = data.shape, np.zeros(data.shape[1])
    for rho in _shares(steps):
        odds, tail = (np.log(2 * n * steps / 0.01), np.log(2 * steps / 0.01))
        reach = radius + np.sqrt(d + 2 * np.sqrt(d * odds) + 2 * odds)
        apart = data - center
        length = np.linalg.norm(apart, axis=1, keepdims=True)
        clipped = center + apart * np.minimum(1, reach / length)
        noise = 2 * reach / n / np.sqrt(2 * rho)
        center = clipped.mean(axis=0) + rng.normal(0, noise, d)
        radius = np.sqrt(d + 2 * np.sqrt(d * tail) + 2 * tail) * np.sqrt(1 / n + noise**2)
    return np.asarray(center)


def paper_covariance(
    data: NDArray[np.float64], top: float, steps: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return the covariance by Algorithm 4 of Biswas et al., with float noise and the same budget in rho."""
    n, d = data.shape
    factors, found = np.eye(d) / top, np.eye(d)
    for rho in _shares(steps):
        odds, tail = (np.log(2 * n * steps / 0.01), np.log(2 * steps / 0.01))
        reach = np.sqrt(d + 2 * np.sqrt(d * odds) + 2 * odds)
        whitened = data @ factors.T
        whitened *= np.minimum(1, reach / np.linalg.norm(whitened, axis=1, keepdims=True))
        stddev = np.sqrt(2) * reach**2 / n / np.sqrt(2 * rho)
        noise = rng.normal(0, stddev, (d, d))
        noise = np.triu(noise) + np.triu(noise, 1).T
        found = whitened.T @ whitened / n + noise
        inverse = np.linalg.inv(factors)
        released = inverse @ found @ inverse.T
        off = np.sqrt(d / n) + np.sqrt(2 * tail / n)
        spectral = stddev * (2 * np.sqrt(d) + np.sqrt(2 * tail))
        values, axes = np.linalg.eigh(found + (2 * off + off**2 + spectral) * np.eye(d))
        factors = (axes / np.sqrt(np.maximum(values, 1e-12))) @ axes.T @ factors
    return np.asarray(released)


def _shares(steps: int) -> list[float]:
    """Return the zCDP of each step, 3/4 in the last; together as much as epsilon 1 and delta 1e-6 allow."""
    rho = 1 / (2 * 4.2247**2)  # of the analytic Gaussian mechanism
    return [rho / 4 / (steps - 1)] * (steps - 1) + [rho * 0.75]


def _recall(listed: Sequence[object]) -> float:
    return len({key for key in listed if isinstance(key, int) and key < 10}) / 10


PARTS = {
    "means": means,
    "tests": sizes,
    "selection": selections,
    "slopes": slopes,
    "several-slopes": several_slopes,
    "trimmed": trimmed,
    "quantiles": quantiles,
    "unbounded": unbounded,
    "vectors": vectors,
    "proportions": hypothesis_tests.proportions,
    "ranks": hypothesis_tests.ranks,
    "slope-tests": hypothesis_tests.slope_tests,
    "variances": hypothesis_tests.variances,
    "quantile-intervals": hypothesis_tests.quantile_intervals,
    "growth": growth,
    **nonparametric.PARTS,
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
