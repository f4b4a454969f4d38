"""Errors and coverages of survival curves, tables, histograms and densities, beside published ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.learning import LogisticRegression
from sfumato.mechanisms import (
    AdaptiveHistogram,
    ContingencyTable,
    Gaussian,
    Histogram,
    KaplanMeier,
    KernelDensity,
    Laplace,
)

__all__ = ["PARTS"]

_Array = NDArray[np.float64]


def survival(runs: int) -> Iterator[list[str]]:
    """Yield errors and coverages of survival curves, Weibull with a mean of two years, at epsilon 1."""
    yield [
        *("records", "times", "error", "Gondara, Wang 2020", "no privacy"),
        *("band covers", "width", "an interval covers", "width"),
    ]
    rng = np.random.default_rng(5)
    for n, size in ((200, 12), (1000, 12), (1000, 36), (5000, 36), (5000, 120)):
        times = np.arange(1, size + 1) * 36 / size
        query, truth = KaplanMeier(times=times.tolist()), np.exp(-((times / 24) ** 1.2))
        noisy, exact = Laplace.for_query(query, epsilon=1.0), Laplace.for_query(query, epsilon=1e9)
        errors, held, widths = np.zeros((runs, 3, size)), np.zeros((runs, 2)), np.zeros((runs, 2))
        for run in range(runs):
            event = 24 * rng.weibull(1.2, n)
            censored = np.ceil(rng.uniform(0, 60, n) * size / 36) * 36 / size
            data = np.stack([np.minimum(event, censored), event <= censored], axis=1)
            release = noisy.release(data, rng)
            errors[run, 0] = query.estimate(release).survival - truth
            errors[run, 1] = _noisy_counts(data, times, rng) - truth
            errors[run, 2] = query.estimate(exact.release(data, rng)).survival - truth
            for place, joint in enumerate((True, False)):
                band = query.survival_band(release, joint=joint, draws=399, rng=rng)
                inside = (band.lower <= truth) & (truth <= band.upper)
                held[run, place] = inside.all() if joint else inside.mean()
                widths[run, place] = (band.upper - band.lower).mean()
        found = [f"{error:.4f}" for error in np.sqrt((errors**2).mean(axis=0)).mean(axis=-1)]
        covers, wide = (
            [f"{x:.3f}" for x in held.mean(axis=0)],
            [f"{x:.3f}" for x in widths.mean(axis=0)],
        )
        yield [str(n), str(size), *found, covers[0], wide[0], covers[1], wide[1]]


def _noisy_counts(data: _Array, times: _Array, rng: np.random.Generator) -> _Array:
    """Return the curve of Gondara and Wang: noise of scale 2 on each count, and on those at risk at first."""
    size = len(times)
    bins, event = np.searchsorted(times, data[:, 0]), data[:, 1] > 0
    events = np.bincount(bins[event & (bins < size)], minlength=size) + rng.laplace(0, 2, size)
    ends = np.bincount(bins[~event & (bins < size)], minlength=size) + rng.laplace(0, 2, size)
    left = len(data) + rng.laplace(0, 2) - np.append(0, np.cumsum(events + ends)[:-1])
    shares = np.clip(1 - np.maximum(events, 0) / np.maximum(left, 1), 0, 1)
    return np.asarray(np.cumprod(shares))


def tables(runs: int) -> Iterator[list[str]]:
    """Yield coverages and widths of intervals for odds ratios, on the scale of logarithms."""
    yield [
        *("shares", "records", "epsilon", "central 95 % of the error", "`odds_ratio`", "covers"),
        *("Wald with the noise's variance", "covers", "Wald without", "covers", "`relative_risk` covers"),
    ]
    rng, query = np.random.default_rng(6), ContingencyTable(rows=(0, 1), columns=(0, 1))
    for n, shares, epsilon in (
        (200, (0.3, 0.2, 0.2, 0.3), 1.0),
        (200, (0.05, 0.45, 0.03, 0.47), 1.0),
        (2000, (0.05, 0.45, 0.03, 0.47), 1.0),
        (500, (0.1, 0.4, 0.1, 0.4), 0.2),
        (2000, (0.02, 0.48, 0.01, 0.49), 0.2),
    ):
        noisy = Laplace.for_query(query, epsilon=epsilon)
        a, b, c, d = shares
        truth, risk = np.log(a * d / b / c), a / (a + b) / (c / (c + d))
        errors, held, widths = np.zeros(runs), np.zeros((runs, 4)), np.zeros((runs, 3))
        for run in range(runs):
            release = noisy.mechanism.release(rng.multinomial(n, shares).reshape(2, 2), rng)
            one = query.odds_ratio(release, draws=399, rng=rng)
            found = [(np.log(one.lower), np.log(one.upper))]
            cells = np.maximum(np.asarray(release.value).ravel(), 0) + 0.5
            middle = np.log(cells) @ [1, -1, -1, 1]
            for variance in (2 / epsilon**2, 0.0):
                half = 1.96 * np.sqrt(((cells + variance) / cells**2).sum())
                found.append((middle - half, middle + half))
            errors[run] = np.log(one.value) - truth
            held[run, :3] = [low <= truth <= high for low, high in found]
            widths[run] = [high - low for low, high in found]
            other = query.relative_risk(release, draws=399, rng=rng)
            held[run, 3] = other.lower <= risk <= other.upper
        central = float(np.diff(np.quantile(errors, [0.025, 0.975]))[0])
        wide, covers = np.median(widths, axis=0), held.mean(axis=0)
        cells_of = [text for w, h in zip(wide, covers[:3], strict=True) for text in (f"{w:.2f}", f"{h:.3f}")]
        yield [str(shares), str(n), str(epsilon), f"{central:.2f}", *cells_of, f"{covers[3]:.3f}"]


def histograms(runs: int) -> Iterator[list[str]]:
    """Yield mean errors of counts between two records, of 20 ranges in each run, at epsilon 1."""
    evens = (16, 64, 256, 1024, 4096)
    yield ["records", "n", "`AdaptiveHistogram`", "bins", *(f"{bins} even bins" for bins in evens)]
    rng = np.random.default_rng(7)
    mechanism = AdaptiveHistogram.calibrated(bounds=((0.0, 1e6),), epsilon=1.0)
    populations: dict[str, Callable[[int], _Array]] = {
        "lognormal": lambda n: np.clip(rng.lognormal(10.5, 0.6, n), 0, 1e6),
        "normal": lambda n: np.clip(rng.normal(4e5, 1e5, n), 0, 1e6),
        "even, half in a spike": lambda n: np.where(
            rng.random(n) < 0.5, rng.normal(1e5, 500, n), rng.uniform(0, 1e6, n)
        ),
    }
    for name, sample in populations.items():
        for n in (1000, 20_000):
            errors, bins = np.zeros((runs, 1 + len(evens))), np.zeros(runs)
            for run in range(runs):
                data = np.sort(sample(n))
                ends = np.sort(rng.choice(data, (20, 2)), axis=1)
                exact = np.searchsorted(data, ends[:, 1]) - np.searchsorted(data, ends[:, 0])
                release = mechanism.release(data, rng)
                errors[run, 0] = np.abs(release.count_between(ends[:, 0], ends[:, 1]) - exact).mean()
                bins[run] = len(release.value)
                for place, even in enumerate(evens):
                    edges = np.linspace(0, 1e6, even + 1)
                    noisy = np.histogram(data, edges)[0] + rng.geometric(1 - np.exp(-1), (2, even)).T @ [
                        1,
                        -1,
                    ]
                    up_to = np.append(0, np.cumsum(noisy))
                    found = np.interp(ends[:, 1], edges, up_to) - np.interp(ends[:, 0], edges, up_to)
                    errors[run, 1 + place] = np.abs(found - exact).mean()
            first, *others = (f"{error:.1f}" for error in errors.mean(axis=0))
            yield [name, str(n), first, f"{bins.mean():.0f}", *others]


def densities(runs: int) -> Iterator[list[str]]:
    """Yield errors of densities of normal records, at epsilon 1 and delta 1e-6, and coverages of bands."""
    yield [
        *("records", "bandwidth", "error", "noise of Hall et al. 2013", "smoothed noisy histogram"),
        *("no privacy", "band covers", "width", "an interval covers", "width"),
    ]
    rng, points = np.random.default_rng(8), np.linspace(-3, 3, 41)
    textbook = np.sqrt(2 * np.log(2 / 1e-6))  # Proposition 3 there, for one record more or less
    for n in (200, 1000, 5000):
        query = KernelDensity.normal_reference(bounds=(-4, 4), stddev=1, n=n, noise=4.2)
        width, variance = query.bandwidth, 1 + query.bandwidth**2
        truth = np.exp(-(points**2) / 2 / variance) / np.sqrt(2 * np.pi * variance)
        noisy = Gaussian.for_query(query, epsilon=1.0, delta=1e-6)
        process = np.linalg.cholesky(
            np.exp(-((points[:, None] - points) ** 2) / 2 / width**2) + 1e-9 * np.eye(41)
        )
        edges = np.linspace(-4, 4, 129)
        middles = (edges[1:] + edges[:-1]) / 2
        smooth = np.exp(-((points[:, None] - middles) ** 2) / 2 / width**2) / np.sqrt(2 * np.pi) / width
        cells = Gaussian.for_query(Histogram(edges=edges.tolist()), epsilon=1.0, delta=1e-6)
        errors, held, widths = np.zeros((runs, 4, 41)), np.zeros((runs, 2)), np.zeros((runs, 2))
        for run in range(runs):
            data = rng.normal(size=n)
            release = noisy.release(data, rng)
            kernels = np.exp(-((points[:, None] - data) ** 2) / 2 / width**2).mean(axis=1)
            plain = kernels / np.sqrt(2 * np.pi) / width
            errors[run, 0] = query.estimate(release, points=points).density - truth
            scale = textbook / (n * np.sqrt(2 * np.pi) * width)
            errors[run, 1] = plain + scale * process @ rng.standard_normal(41) - truth
            errors[run, 2] = smooth @ np.asarray(cells.release(data, rng).value) / n - truth
            errors[run, 3] = plain - truth
            for place, joint in enumerate((True, False)):
                band = query.density_band(release, points=points, joint=joint, draws=199, rng=rng)
                inside = (band.lower <= truth) & (truth <= band.upper)
                held[run, place] = inside.all() if joint else inside.mean()
                widths[run, place] = (band.upper - band.lower).mean()
        found = [f"{error:.4f}" for error in np.sqrt((errors**2).mean(axis=0)).mean(axis=-1)]
        covers = [f"{x:.3f}" for pair in zip(held.mean(0), widths.mean(0), strict=True) for x in pair]
        yield [str(n), f"{width:.2f}", *found, *covers]


def coefficients(runs: int) -> Iterator[list[str]]:
    """Yield errors and coverages of a logistic slope of 0.4, of two features."""
    yield [
        *(
            "rows",
            "epsilon",
            "share",
            "finite",
            "central 95 % of the error",
            "`coefficient_errors`",
            "covers",
        ),
        *("Wald without the noise", "covers", "error of `coef_`", "without its ridge's bias", "no privacy"),
    ]
    rng, truth = np.random.default_rng(9), np.array([-2.0, 0.4, -0.1])
    for n, epsilon, share in ((2000, 1.0, 0.2), (5000, 1.0, 0.2), (5000, 4.0, 0.2), (20_000, 0.5, 0.2)):
        errors, held, widths = np.zeros((runs, 3)), np.zeros((runs, 3)), np.zeros((runs, 2))
        for run in range(runs):
            features = np.column_stack([rng.uniform(0, 10, n), rng.normal(5, 2, n).clip(0, 10)])
            design = np.column_stack([np.ones(n), features])
            answers = rng.random(n) < 1 / (1 + np.exp(-design @ truth))
            model = LogisticRegression(
                epsilon=epsilon,
                bounds=(0, 10),
                classes=[False, True],
                solver="objective",
                error_share=share,
                random_state=int(rng.integers(1 << 31)),
            ).fit(features, answers)
            one = model.coefficient_errors(draws=399, rng=rng)
            plain = truth.copy()
            for _ in range(6):
                chances = 1 / (1 + np.exp(-design @ plain))
                information = (design * (chances * (1 - chances))[:, None]).T @ design
                plain = plain + np.linalg.solve(information, design.T @ (answers - chances))
            released = float(model.coef_[0, 0])
            half = 1.96 * float(np.sqrt(np.linalg.inv(information)[1, 1]))
            finite = bool(np.isfinite(one.upper[1]))
            middle = float((one.lower[1] + one.upper[1]) / 2) if finite else released
            errors[run] = np.array([released, middle, plain[1]]) - truth[1]
            held[run] = (
                one.lower[1] <= truth[1] <= one.upper[1],
                abs(released - truth[1]) <= half,
                finite,
            )
            widths[run] = one.upper[1] - one.lower[1], 2 * half
        central = float(np.diff(np.quantile(errors[:, 1], [0.025, 0.975]))[0])
        wide, covers = np.median(widths, axis=0), held.mean(axis=0)
        yield [
            *(str(n), str(epsilon), str(share), f"{covers[2]:.3f}", f"{central:.3f}"),
            *(f"{wide[0]:.3f}", f"{covers[0]:.3f}", f"{wide[1]:.3f}", f"{covers[1]:.3f}"),
            *(f"{error:.4f}" for error in np.sqrt((errors**2).mean(axis=0))),
        ]


PARTS: dict[str, Callable[[int], Iterator[list[str]]]] = {
    "survival": survival,
    "tables": tables,
    "histograms": histograms,
    "densities": densities,
    "coefficients": coefficients,
}
