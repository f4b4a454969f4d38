"""Errors and coverages of survival curves, tables, histograms and densities, beside published ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms import KaplanMeier, Laplace

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


PARTS: dict[str, Callable[[int], Iterator[list[str]]]] = {"survival": survival}
