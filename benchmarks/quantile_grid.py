"""A grid of quantiles: the error of what SQL picks over that of the candidate that is best for the data.

Candidates are choices by halves, a choice for each quantile with an equal part of epsilon, and a noisy tree.
The pick follows from the numbers of quantiles and bins alone. Errors are means over quantiles and runs, in
ranks: how far the target rank is from the ranks of the answer. Below half a row an error counts as that.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.statistics.quantile.binned_quantiles import BinnedQuantiles, BinnedRows
from sfumato.mechanisms.statistics.quantile.count_tree import CountTree, TreeCounts, TreeShape
from sfumato.mechanisms.statistics.quantile.tree_estimates import quantile_leaves
from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution, DiscreteLaplaceDistribution
from sfumato.numerics.randomness.source import random_source
from sfumato.queries.pricing.quantile_bins import chosen_by_rank

__all__ = ["grid"]

_Floats = NDArray[np.float64]
_Sampler = Callable[[np.random.Generator, int], _Floats]

_DISTRIBUTIONS: dict[str, _Sampler] = {
    "uniform": lambda rng, n: rng.uniform(0, 1, n),
    "normal": lambda rng, n: rng.normal(0.5, 0.12, n),
    "lognormal": lambda rng, n: rng.lognormal(-3, 1, n),
    "two peaks": lambda rng, n: np.where(rng.random(n) < 0.5, 0.2, 0.8) + rng.normal(0, 0.02, n),
    "heavy tails": lambda rng, n: 0.5 + 0.01 * rng.standard_t(2, n),
    "half zeros": lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, rng.exponential(0.1, n)),
}
_ORDERS: dict[str, tuple[float, ...]] = {
    "1: 0.5": (0.5,),
    "1: 0.9": (0.9,),
    "1: 0.005": (0.005,),
    "3": (0.25, 0.5, 0.75),
    "5": (0.005, 0.25, 0.5, 0.75, 0.995),
    "9": tuple(k / 10 for k in range(1, 10)),
    "21": (0.005, *(k / 20 for k in range(1, 20)), 0.995),
    "99": tuple(k / 100 for k in range(1, 100)),
}
_BINS = (16, 121, 2048, 1 << 16)
_FLOOR = 0.5


def _mean_error(rows: NDArray[np.int64], bins: int, order: float, epsilon: float) -> float:
    """Return the mean error of one choice among bins, by its law."""
    below = np.searchsorted(rows, np.arange(bins + 1))
    target = order * (len(rows) - 1) + 0.5
    gaps = np.maximum(0, np.maximum(below[:-1] - target, target - below[1:]))
    weights = np.exp(-epsilon / (2 * max(order, 1 - order)) * (gaps - gaps.min()))
    return float((weights * gaps).sum() / weights.sum())


def _errors(found: NDArray[np.int64], rows: NDArray[np.int64], orders: Sequence[float]) -> float:
    targets = np.array(orders) * (len(rows) - 1) + 0.5
    below = np.searchsorted(rows, found, side="left")
    upto = np.searchsorted(rows, found, side="right")
    return float(np.maximum(0, np.maximum(below - targets, targets - upto)).mean())


def _candidates(
    data: BinnedRows, rows: NDArray[np.int64], orders: Sequence[float], epsilon: float, *, gaussian: bool
) -> dict[str, float]:
    """Return the error of each candidate; beside Gaussian noise epsilon is the mu of Gaussian DP."""
    source, many, depth = random_source(7), len(orders), len(orders).bit_length()

    def part(count: int) -> Fraction:
        return Fraction(2 * epsilon / math.sqrt(count) if gaussian else epsilon / count)

    def chosen(some: Sequence[float], count: int) -> NDArray[np.int64]:
        mechanism = BinnedQuantiles(quantiles=some, epsilon=part(count).limit_denominator(1 << 30))
        return np.asarray(mechanism.release(data, source).value)

    if many == 1:
        found = {"halves": _mean_error(rows, data.bins, orders[0], float(part(1)))}
    else:
        found = {"halves": _errors(chosen(orders, depth), rows, orders)}
    if 1 < many < 10:
        each = np.concatenate([chosen((order,), many) for order in orders], axis=1)
        found["each"] = _errors(np.sort(each, axis=1), rows, orders)
    shape = TreeShape.of(data.bins)
    distribution = (
        DiscreteGaussianDistribution(Fraction(math.sqrt(shape.height) / epsilon))
        if gaussian
        else DiscreteLaplaceDistribution(Fraction(shape.height / epsilon))
    )
    tree = CountTree(shape, distribution, data.counts, source)
    groups = np.repeat(np.arange(data.groups), many)
    leaves = quantile_leaves(tree, groups, np.tile(np.array(orders), data.groups))
    found["tree"] = _errors(leaves.reshape(-1, many), rows, orders)
    return {name: max(_FLOOR, error) for name, error in found.items()}


def _cells(runs: int) -> Iterator[tuple[str, int, bool, float, dict[str, float]]]:
    """Return the number of quantiles and of bins, the kind of noise, and the errors of each cell."""
    for (name, sample), size, bins in itertools.product(_DISTRIBUTIONS.items(), (300, 3000, 30_000), _BINS):
        rng = np.random.default_rng([size, bins, len(name)])
        values = np.clip(np.floor(sample(rng, size) * bins), 0, bins - 1).astype(np.int64)
        leaves, counts = np.unique(values, return_counts=True)
        rows = np.sort(values)
        for (asked, orders), epsilon, gaussian in itertools.product(
            _ORDERS.items(), (0.1, 1.0), (False, True)
        ):
            times = max(1, min(runs * 4, runs * 9 // len(orders)))
            groups = np.repeat(np.arange(times), len(leaves))
            data = BinnedRows(TreeCounts(groups, np.tile(leaves, times), np.tile(counts, times)), bins, times)
            found = _candidates(data, rows, orders, epsilon / (3 if gaussian else 1), gaussian=gaussian)
            picked = found["halves" if chosen_by_rank(bins, orders, gaussian=gaussian) else "tree"]
            yield asked, bins, gaussian, picked / min(found.values()), found


def grid(runs: int) -> None:
    """Print the ratios by number of quantiles, bins and noise, and of all."""
    ratios: dict[tuple[str, int, bool], list[float]] = {}
    errors: dict[tuple[str, int, bool], list[dict[str, float]]] = {}
    for asked, bins, gaussian, ratio, found in _cells(runs):
        ratios.setdefault((asked, bins, gaussian), []).append(ratio)
        errors.setdefault((asked, bins, gaussian), []).append(found)
    title = "quantiles, bins, noise"
    print(f"{title:<28}{'median':>8}{'90 %':>8}{'largest':>9}   tree over halves, median")
    for (asked, bins, gaussian), those in sorted(ratios.items(), key=lambda item: (item[0][1:], item[0][0])):
        noise = "Gaussian" if gaussian else "Laplace"
        trees = statistics.median(found["tree"] / found["halves"] for found in errors[asked, bins, gaussian])
        high = float(np.quantile(those, 0.9))
        print(
            f"{f'{asked}, {bins}, {noise}':<28}{statistics.median(those):>8.2f}{high:>8.2f}{max(those):>9.2f}"
            f"   {trees:.2f}"
        )
    every = [ratio for those in ratios.values() for ratio in those]
    over = sum(ratio > 2 for ratio in every)
    print(
        f"{len(every)} cells: median {statistics.median(every):.3f}, {over} above 2, at most {max(every):.2f}"
    )
