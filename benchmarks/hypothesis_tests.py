"""Sizes and powers of tests at 5 %, and coverages at 95 %, each beside the best published alternative.

Published tests have a replaced record and a public number of records. Ours are measured for a record that is
added, with a private number, and for one that is replaced, on ranks with a public one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from sfumato.mechanisms import (
    CanonicalNoise,
    Gaussian,
    Grid,
    KendallTau,
    Laplace,
    LatticeRelease,
    LeastSquares,
    Quantile,
    QuantileInterval,
    Query,
    SpearmanRho,
    TwoSampleKolmogorovSmirnov,
    Variance,
    WilcoxonSignedRank,
    slope_test,
    t_interval,
    two_proportions_interval,
    two_proportions_test,
    variance_interval,
)
from sfumato.privacy import Neighboring

__all__ = ["proportions", "quantile_intervals", "ranks", "slope_tests", "variances"]

Array = NDArray[np.float64]
REPLACE = Neighboring.REPLACE_ONE
DRAWS = 99
SIZE = 0.05


def refused(p_values: Sequence[float]) -> str:
    """Return the share of p-values of at most 5 %."""
    return f"{np.mean(np.array(p_values) <= SIZE):.3f}"


def ranked(value: float, drawn: Array) -> float:
    """Return the share of a value and draws that are at least the value."""
    return float((1 + (drawn >= value).sum()) / (1 + drawn.size))


def proportions(runs: int) -> Iterator[list[str]]:
    """Yield sizes and powers of tests of two proportions, and coverages and widths of intervals."""
    rng = np.random.default_rng(5)
    joining = Laplace.calibrated(sensitivity=1, epsilon=1.0)
    tulap = CanonicalNoise(sensitivity=1.0, epsilon=1.0, grid=Grid(exponent=-8), neighboring=REPLACE)
    yield ["sizes", "shares", "private sizes", "public", "Awan, Vadhan", "interval covers", "width"]
    for n, m in ((30, 30), (400, 200)):
        for first, second in ((0.5, 0.5), (0.1, 0.1), (0.3, 0.3 + 3 / (n + m) ** 0.5)):
            sizes = np.array([n, m])
            counts = [rng.binomial(sizes, (first, second)) for _ in range(runs)]
            four = [joining.release(np.stack([one, sizes - one], axis=1), rng) for one in counts]
            two = [tulap.release(one.astype(float), rng) for one in counts]
            ends = [two_proportions_interval(one, draws=DRAWS, rng=rng) for one in four]
            private = [two_proportions_test(one, draws=DRAWS, rng=rng).p_value for one in four]
            public = [two_proportions_test(one, sizes=(n, m), draws=DRAWS, rng=rng).p_value for one in two]
            published = [_plugged_in(np.asarray(one.value), sizes, tulap, rng) for one in two]
            covers = np.mean([one.lower <= first - second <= one.upper for one in ends])
            yield [
                f"{n}, {m}",
                f"{first}, {second:.2f}",
                *(refused(values) for values in (private, public, published)),
                f"{covers:.3f}",
                f"{np.median([one.upper - one.lower for one in ends]):.3f}",
            ]


def _plugged_in(
    noisy: Array, sizes: NDArray[np.int64], noise: CanonicalNoise, rng: np.random.Generator
) -> float:
    """Return Awan and Vadhan's p-value, by draws in the place of inverted characteristic functions."""
    share = float(np.clip(noisy.sum() / sizes.sum(), 0, 1))
    added = np.asarray(noise.outputs(0.0, 2 * DRAWS, rng), dtype=np.float64).reshape(DRAWS, 2)
    shares = (rng.binomial(sizes, share, (DRAWS, 2)) + added) / sizes
    return ranked(abs(float(np.subtract(*(noisy / sizes)))), np.abs(shares[:, 0] - shares[:, 1]))


def _signed(n: int, effect: float, rng: np.random.Generator) -> Array:
    return rng.normal(effect, 1, n)


def _pairs(n: int, effect: float, rng: np.random.Generator) -> Array:
    x = rng.normal(size=n)
    return np.column_stack([x, effect * x + np.sqrt(1 - effect**2) * rng.normal(size=n)])


def _groups(n: int, effect: float, rng: np.random.Generator) -> Array:
    group = rng.permutation(n) < n // 2
    return np.column_stack([group, rng.normal(size=n) + effect * group])


def _null(query: object, n: int, rng: np.random.Generator) -> Array:
    """Return statistics of n records under the null hypothesis, in the unit of our queries."""
    place = np.arange(1, n + 1)
    if isinstance(query, WilcoxonSignedRank):
        return np.asarray((rng.choice([-1, 1], (DRAWS, n)) * place).sum(axis=1) / (n + 1))
    if isinstance(query, KendallTau):
        inversions = np.floor(rng.random((DRAWS, n)) * place).sum(axis=1)
        return np.asarray((n - 1) / 2 - 2 * inversions / n)
    orders = rng.permuted(np.tile(place, (DRAWS, 1)), axis=1)
    if isinstance(query, SpearmanRho):
        return np.asarray(12 * ((orders - (n + 1) / 2) * place).sum(axis=1) / (n * (n + 1)))
    first = orders <= n - n // 2
    return np.asarray(np.abs(np.cumsum(first, axis=1) - place * (n - n // 2) / n).max(axis=1))


def ranks(runs: int) -> Iterator[list[str]]:
    """Yield sizes and powers of tests on ranks, at epsilon 1."""
    rng = np.random.default_rng(6)
    # Sensitivities for a public n, in the unit of ours: W / (n + 1), K / n, n rho and D nm / (n + m).
    cases: list[tuple[Query, Callable[..., Array], float, Callable[[int], float], str]] = [
        (WilcoxonSignedRank(), _signed, 0.4, lambda n: 2 * n / (n + 1), "Couch et al."),
        (KendallTau(), _pairs, 0.4, lambda n: 2 * (n - 1) / n, "with a public n"),
        (SpearmanRho(), _pairs, 0.4, lambda n: 6 * (n - 1) / (n + 1), "with a public n"),
        (TwoSampleKolmogorovSmirnov(), _groups, 0.8, lambda n: 0.5, "Awan, Wang"),
    ]
    yield [
        "query",
        "n",
        "size: added",
        "replaced",
        "other",
        "power: added",
        "replaced",
        "other",
        "which other",
    ]
    for query, draw, effect, sensitivity, whose in cases:
        relations = (Neighboring.ADD_REMOVE, REPLACE)
        for n in (50, 200):
            cells = []
            for size in (0.0, effect * (30 / n) ** 0.5 * 1.5):
                data = [draw(n, size, rng) for _ in range(runs)]
                for relation in relations:
                    one, given = Laplace.for_query(query, epsilon=1.0, neighboring=relation), data
                    if isinstance(query, TwoSampleKolmogorovSmirnov) and relation is REPLACE:
                        of_size = TwoSampleKolmogorovSmirnov(sizes=(n - n // 2, n // 2))
                        one = Laplace.for_query(of_size, epsilon=1.0, neighboring=REPLACE)
                        given = [each[np.argsort(each[:, 0], kind="stable"), 1] for each in data]
                    public = {"n": n} if relation is REPLACE and given is data else {}
                    test = partial(one.query.test, draws=DRAWS, rng=rng, **public)  # type: ignore[attr-defined]
                    found = [test(one.release(each, rng)) for each in given]
                    cells.append(refused([result.p_value for result in found]))
                noise = rng.laplace(0, sensitivity(n), (runs, DRAWS + 1))
                other = []
                for each, added in zip(data, noise, strict=True):
                    value, drawn = float(query(each)[0]) + added[0], _null(query, n, rng) + added[1:]
                    one_sided = isinstance(query, TwoSampleKolmogorovSmirnov)
                    other.append(ranked(value, drawn) if one_sided else ranked(abs(value), np.abs(drawn)))
                cells.append(refused(other))
            yield [f"`{type(query).__name__}`", str(n), *cells, whose]


def _noisy_line(x: Array, y: Array, stddev: float, rng: np.random.Generator) -> tuple[float, ...]:
    """Return means and second moments of numbers from -4 to 4, each with noise for a replaced record."""
    n, x, y = len(x), np.clip(x, -4, 4), np.clip(y, -4, 4)
    exact = np.array([x.mean(), y.mean(), (x * x).mean(), (x * y).mean(), (y * y).mean()])
    scale = np.array([8, 8, 16, 32, 16]) / n * np.sqrt(5) * stddev
    return tuple((exact + rng.normal(0, scale)).tolist())


def _f_statistic(moments: tuple[float, ...], n: int) -> float:
    """Return Alabi and Vadhan's statistic of a slope, 0 where the noise leaves no data."""
    x, y, xx, xy, yy = moments
    var_x, cov, var_y = xx - x * x, xy - x * y, yy - y * y
    if var_x <= 0 or var_y <= 0 or var_y * var_x <= cov**2:
        return 0.0
    explained = cov**2 / var_x
    return float((n - 2) * explained / (var_y - explained))


def _published_slope(x: Array, y: Array, stddev: float, rng: np.random.Generator) -> float:
    """Return the p-value of Alabi and Vadhan's parametric bootstrap."""
    n, moments = len(x), _noisy_line(x, y, stddev, rng)
    squares = moments[2] - moments[0] ** 2, moments[4] - moments[1] ** 2
    if not min(squares) > 0:
        return 1.0
    drawn = np.zeros(DRAWS)
    for place in range(DRAWS):
        first = rng.normal(moments[0], squares[0] ** 0.5, n)
        second = rng.normal(moments[1], squares[1] ** 0.5, n)
        drawn[place] = _f_statistic(_noisy_line(first, second, stddev, rng), n)
    return ranked(_f_statistic(moments, n), drawn)


def slope_tests(runs: int) -> Iterator[list[str]]:
    """Yield sizes and powers of tests of a slope, with Gaussian noise at epsilon 1 and delta 1e-6."""
    rng, query = np.random.default_rng(7), LeastSquares(bounds=((-4, 4), (-4, 4)))
    relations = (Neighboring.ADD_REMOVE, REPLACE)
    noisy = [Gaussian.for_query(query, epsilon=1.0, delta=1e-6, neighboring=one) for one in relations]
    # The same noise multiplier, of which each of five moments has a fifth of the variance's inverse.
    stddev = float(Gaussian.calibrated(sensitivity=1.0, epsilon=1.0, delta=1e-6).stddev)
    yield ["n", "size: added", "replaced", "Alabi, Vadhan", "power: added", "replaced", "Alabi, Vadhan"]
    for n, slope in ((1000, 0.2), (5000, 0.06)):
        cells = []
        for truth in (0.0, slope):
            for one in (*noisy, None):
                found = []
                for _ in range(runs if one else min(runs, 400_000 // n)):
                    x = rng.normal(size=n)
                    y = truth * x + rng.normal(0, 0.8, n)
                    if one is None:
                        found.append(_published_slope(x, y, stddev, rng))
                        continue
                    release = one.release(np.column_stack([x, y]), rng)
                    found.append(slope_test(release, draws=DRAWS, rng=rng).p_value)
                cells.append(refused(found))
        yield [str(n), *cells]


def variances(runs: int) -> Iterator[list[str]]:
    """Yield coverages and widths of intervals for a variance and for a difference of means, at epsilon 1."""
    rng, query = np.random.default_rng(8), Variance(bounds=(0.0, 100.0))
    noisy = Laplace.for_query(query, epsilon=1.0)
    yield ["deviation", "n", "covers", "of deviations", "bootstrap", "of deviations", "means", "width"]
    for deviation in (4, 15):
        for n in (20, 200, 2000):
            ends = np.zeros((3, runs, 2))
            for run in range(runs):
                one, two = (noisy.release(rng.normal(50, deviation, n), rng) for _ in range(2))
                ends[0, run] = variance_interval(one, draws=DRAWS, rng=rng)[:2]
                ends[1, run] = _percentiles(one, rng)
                ends[2, run] = t_interval(one, two, draws=DRAWS, rng=rng)[:2]
            truths = np.array([deviation**2, deviation**2, 0])[:, None]
            covers = ((ends[..., 0] <= truths) & (truths <= ends[..., 1])).mean(axis=1)
            middle, width = np.sqrt(np.median(ends[:2], axis=1)), np.median(ends[2, :, 1] - ends[2, :, 0])
            row = [str(deviation), str(n)]
            for share, (low, high) in zip(covers, middle, strict=False):
                row += [f"{share:.3f}", f"{low:.1f} to {high:.1f}"]
            yield [*row, f"{covers[2]:.3f}", f"{width:.2f}"]


def _percentiles(release: LatticeRelease, rng: np.random.Generator) -> Array:
    """Return the percentile interval for a variance by the parametric bootstrap of Ferrando et al."""
    high, cross, low = np.asarray(release.value)
    count = max(2.0, high + cross + low)
    mean = (high + cross / 2) / count
    seen = float(np.clip(high / count - mean**2, 1 / count**2, 0.25))
    around = mean + np.sqrt(seen / count) * rng.standard_normal(DRAWS)
    square = around**2 + seen * rng.chisquare(count - 1, DRAWS) / count
    sums = count * np.stack([square, 2 * (around - square), 1 - 2 * around + square])
    sums = sums + np.asarray(release.distribution.sample((3, DRAWS), rng)) * float(release.step)
    total = np.maximum(2.0, sums.sum(axis=0))
    drawn = np.clip(sums[0] / total - ((sums[0] + sums[1] / 2) / total) ** 2, 0, 0.25)
    return np.asarray(1e4 * np.quantile(drawn, [0.025, 0.975]))


def quantile_intervals(runs: int) -> Iterator[list[str]]:
    """Yield coverages and widths of intervals for a median of normal records, at epsilon 1."""
    rng, bounds = np.random.default_rng(9), (-5.0, 5.0)
    ours = QuantileInterval(bounds=bounds, epsilon=1.0)
    end = Quantile(bounds=bounds, epsilon=0.5, grid=ours.grid)
    yield ["n", "covers", "width", "public n (Drechsler et al.) covers", "width", "no privacy"]
    for n in (200, 2000, 20_000):
        # Without a private n: half of epsilon for either end, and as many records added at a bound.
        reach = n / 2 - float(binom.ppf(0.025 * 0.95, n, 0.5)) + end.rank_bound(0.025 * 0.05)
        added = np.ceil(2 * reach).astype(int)
        ends = np.zeros((3, runs, 2))
        for run in range(runs):
            data = np.sort(rng.normal(size=n))
            ends[0, run] = ours.release(data, rng).value
            for place, bound in enumerate(bounds):
                ends[1, run, place] = end.release(np.append(data, np.full(added, bound)), rng).value
            ends[2, run] = data[[int(binom.ppf(share, n, 0.5)) for share in (0.025, 0.975)]]
        covers = ((ends[..., 0] <= 0) & (ends[..., 1] >= 0)).mean(axis=1)
        widths = np.median(ends[..., 1] - ends[..., 0], axis=1)
        yield [
            str(n),
            f"{covers[0]:.3f}",
            f"{widths[0]:.3f}",
            f"{covers[1]:.3f}",
            *(f"{w:.3f}" for w in widths[1:]),
        ]
