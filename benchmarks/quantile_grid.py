"""A grid of quantiles: the error of what SQL picks over that of the candidate that is best for the data.

Candidates are choices by halves, a choice for each quantile with an equal part of epsilon, a noisy tree, and
SliceQuantiles (`benchmarks.slice_quantiles`) where it never answers at random. The pick follows from the
orders and the number of bins alone. Errors are means over quantiles and runs, in ranks: how far the target
rank is from the ranks of the answer. Below half a row an error counts as that. A ratio of two means of few
draws is noise: where it is above 1.3, the candidates are drawn anew, many times, and those draws alone count.

A rule of public parameters answers all data alike: rows and distribution are not public. So where each
candidate is above 2 on some data with the same quantiles, bins, noise and epsilon, no rule picks one that
never is; those are listed at the end, with the largest ratio of each candidate.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from benchmarks.slice_quantiles import slice_quantiles
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
_DOUBTFUL = 1.3
_DRAWS = {1: 400, 3: 100, 5: 60, 9: 40, 21: 32, 99: 16}
"""By the number of quantiles, how often a cell is drawn whose ratio is in doubt."""

_Cell = tuple[str, int, bool, float]


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
    if many > 1:
        drawn = slice_quantiles(rows, data.bins, orders, epsilon, source, runs=data.groups, gaussian=gaussian)
        if drawn is not None:
            found["slices"] = _errors(drawn, rows, orders)
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


def _cells(runs: int) -> Iterator[tuple[_Cell, str, dict[str, float]]]:
    """Return the quantiles, bins, kind of noise and epsilon of each cell, the pick, and the errors."""
    for (name, sample), size, bins in itertools.product(_DISTRIBUTIONS.items(), (300, 3000, 30_000), _BINS):
        rng = np.random.default_rng([size, bins, len(name)])
        values = np.clip(np.floor(sample(rng, size) * bins), 0, bins - 1).astype(np.int64)
        leaves, counts = np.unique(values, return_counts=True)
        rows = np.sort(values)
        for (asked, orders), epsilon, gaussian in itertools.product(
            _ORDERS.items(), (0.1, 1.0), (False, True)
        ):
            picked = "halves" if chosen_by_rank(bins, orders, gaussian=gaussian) else "tree"
            few = max(1, min(runs * 4, runs * 9 // len(orders)))
            found: dict[str, float] = {}
            for times in (few, _DRAWS[len(orders)]):
                groups = np.repeat(np.arange(times), len(leaves))
                data = BinnedRows(
                    TreeCounts(groups, np.tile(leaves, times), np.tile(counts, times)), bins, times
                )
                part = epsilon / (3 if gaussian else 1)
                found = _candidates(data, rows, orders, part, gaussian=gaussian)
                if times >= _DRAWS[len(orders)] or found[picked] <= _DOUBTFUL * min(found.values()):
                    break
            yield (asked, bins, gaussian, epsilon), picked, found


def grid(runs: int) -> None:
    """Print the ratios by number of quantiles, bins and noise, of all, and where no rule is below 2."""
    cells: dict[_Cell, list[dict[str, float]]] = {}
    picks: dict[_Cell, str] = {}
    for cell, picked, found in _cells(runs):
        cells.setdefault(cell, []).append(found)
        picks[cell] = picked
    title = "quantiles, bins, noise"
    print(f"{title:<28}{'median':>8}{'90 %':>8}{'largest':>9}   tree over halves, median")
    every: list[float] = []
    for asked, bins, gaussian in sorted({cell[:3] for cell in cells}, key=lambda key: (key[1:], key[0])):
        both = [(asked, bins, gaussian, epsilon) for epsilon in (0.1, 1.0)]
        those = [ratio for cell in both for ratio in _ratios(cells[cell], picks[cell])]
        trees = statistics.median(found["tree"] / found["halves"] for cell in both for found in cells[cell])
        high = float(np.quantile(those, 0.9))
        print(
            f"{_words(both[0]):<28}{statistics.median(those):>8.2f}{high:>8.2f}{max(those):>9.2f}"
            f"   {trees:.2f}"
        )
        every += those
    over = sum(ratio > 2 for ratio in every)
    print(
        f"{len(every)} cells: median {statistics.median(every):.3f}, {over} above 2, at most {max(every):.2f}"
    )
    sliced = [found for those in cells.values() for found in those if "slices" in found]
    better = [found["slices"] / min(found["halves"], found["tree"]) for found in sliced]
    print(
        f"SliceQuantiles answers in {len(sliced)} cells; its error is below that of halves and tree in "
        f"{sum(ratio < 1 for ratio in better)}, at least {min(better, default=math.inf):.2f} of it"
    )
    print("largest ratio of each candidate, where the pick is above 2 on some data:")
    for cell, errors in cells.items():
        if max(_ratios(errors, picks[cell])) <= 2:
            continue
        names = [name for name in ("halves", "each", "tree") if name in errors[0]]
        largest = {name: max(_ratios(errors, name)) for name in names}
        no_rule = "" if min(largest.values()) <= 2 else "   no rule is below 2"
        table = ", ".join(f"{name} {ratio:.1f}" for name, ratio in largest.items())
        print(f"  {_words(cell)}, epsilon {cell[3]:g}: {picks[cell]} of {table}{no_rule}")


def _ratios(errors: Sequence[dict[str, float]], name: str) -> list[float]:
    """Return the error of a candidate over the least, of each cell."""
    return [found[name] / min(found.values()) for found in errors]


def _words(cell: _Cell) -> str:
    return f"{cell[0]}, {cell[1]}, {'Gaussian' if cell[2] else 'Laplace'}"
