"""The contour, bins and smoothing of an inversion: they affect the width of its bounds, not the validity."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT
from sfumato.privacy.accountant.composed_losses import ComposedLosses
from sfumato.privacy.accountant.enumeration import enumerated
from sfumato.privacy.accountant.few_runs import FewRuns
from sfumato.privacy.pairs.bins import Bins
from sfumato.privacy.pairs.discrete_loss import DiscreteLoss, Tilted
from sfumato.privacy.pairs.pair import Pair

__all__ = ["NumericalPlan", "Pairs", "PlannedPart", "Saddle", "Survey", "survey"]

_Array = NDArray[np.float64]
Pairs: TypeAlias = Sequence[tuple[Pair, int]]
_Objective: TypeAlias = Callable[[_Array], _Array]

_FIRST_TILTS: Final = np.exp(np.linspace(math.log(1e-7), math.log(1e8), 23))
_CLOSER: Final = np.linspace(-1.0, 1.0, 7)
_MANY: Final = 64
_VERY_MANY: Final = 4096
_ROWS: Final = 64
"""Pairs that are cut side by side for a first look."""
_BLOCK: Final = 6000
"""Bins that are worked on side by side: they stay close to the processor."""
_MAX_BINS: Final = 40_000
_LARGE: Final = -5.0
"""Log of a delta."""
_ROUNDS: Final = 3
_CLOSE_UP: Final = 96.0
"""Bins of a pair that ran alone, most of them where its loss is epsilon."""
_TAIL_PROPORTION: Final = 1e-10
"""Mass that is not followed, as a proportion of delta."""
_SMOOTHING_PROPORTION: Final = 0.4
_MAX_SMOOTHING: Final = 0.5
_TINY: Final = 1e-300


class Saddle(NamedTuple):
    """About where the integrand has its saddle point, and the values of the composition there.

    ``deviation`` is the standard deviation of the tilted loss with that of the kernel. Of two runs, ``slope``
    is about that of the log of delta, found by adding them up.
    """

    tilt: float
    epsilon: float
    log_delta: float
    deviation: float
    slope: float = math.nan


@dataclass(frozen=True)
class PlannedPart:
    """One pair in one order, or several of a kind, cut into bins."""

    pair: Pair
    counts: _Array
    swapped: bool
    cuts: _Array
    bins: Bins

    @cached_property
    def distribution(self) -> DiscreteLoss:
        """A lower distribution of the loss."""
        return self.bins.merged()

    @classmethod
    def cut(cls, pair: Pair, counts: _Array, cuts: _Array, *, swapped: bool) -> PlannedPart:
        """Cut a pair near the given cuts."""
        cuts = pair.snapped(cuts)
        return cls(pair, counts, swapped, cuts, pair.bins(cuts, swapped=swapped))

    def mirrored(self) -> PlannedPart:
        """Return the other order, cut at the same points."""
        return PlannedPart.cut(self.pair, self.counts, self.cuts, swapped=not self.swapped)

    def bin_weights(self, distribution: Tilted) -> _Array:
        """Return how many bins are best between each two cuts, up to a factor.

        A bin's two bounds differ by its tilted mass times the square of its width in loss; under a fixed
        number of bins the sum is smallest where each contributes the cube root.
        """
        widths = np.diff(self.bins.edges)
        weights = distribution.weights[..., : widths.shape[-1]]
        if self.bins.against:
            weights, widths = weights[..., ::-1], widths[..., ::-1]
        return np.asarray(np.cbrt(weights * widths**2))

    def around(self, epsilon: float) -> _Array:
        """Return weights of bins that make those short whose loss is about epsilon."""
        index = int(np.searchsorted(self.bins.edges, epsilon)) - 1
        last = len(self.bins.edges) - 2
        index = last - index if self.bins.against else index
        return np.where(np.abs(np.arange(last + 1) - min(max(index, 0), last)) <= 1, 1.0, 1.0 / (last + 1))

    def recut(self, bin_weights: _Array, wanted: float) -> PlannedPart:
        """Return the part with about ``wanted`` bins, no fewer than the pair needs anywhere."""
        if not self.pair.continuous:
            cuts = self.pair.sharper(self.cuts)
            same = cuts is self.cuts
            return self if same else PlannedPart.cut(self.pair, self.counts, cuts, swapped=self.swapped)
        return _finer(self.pair, self.counts, self.cuts, bin_weights, wanted, swapped=self.swapped)


def _finer(
    pair: Pair, counts: _Array, cuts: _Array, bin_weights: _Array, wanted: float, *, swapped: bool
) -> PlannedPart:
    heights = min(wanted, _MAX_BINS) * bin_weights / np.maximum(bin_weights.sum(axis=-1), _TINY)[..., None]
    return PlannedPart.cut(pair, counts, pair.finer(cuts, heights), swapped=swapped)


_Wish: TypeAlias = tuple[PlannedPart, _Array, _Array]
"""A part, the weights of its bins, and how many bins are wanted of each of its pairs."""


def _recut(wishes: Iterable[_Wish]) -> Iterator[PlannedPart]:
    """Yield the parts with as many bins as wanted; of a kind, those that want alike side by side."""
    kinds: dict[Hashable, list[_Wish]] = {}
    for wish in wishes:
        part, bin_weights, wanted = wish
        if part.pair.continuous and part.cuts.ndim > 1:
            kinds.setdefault((part.pair.kind, part.cuts.shape[-1]), []).append(wish)
        else:
            yield part.recut(bin_weights, float(wanted.max()))
    for alike in kinds.values():
        yield from _recut_rows(alike)


def _recut_rows(wishes: Sequence[_Wish]) -> Iterator[PlannedPart]:
    first = wishes[0][0]
    parameters = np.concatenate([np.array(part.pair.parameters) for part, _, _ in wishes], axis=1)
    counts = np.concatenate([part.counts for part, _, _ in wishes])
    cuts = np.concatenate([part.cuts for part, _, _ in wishes])
    bin_weights, wanted = (np.concatenate([wish[i] for wish in wishes]) for i in (1, 2))
    left = np.argsort(-wanted)
    while len(left):
        bins = max(float(wanted[left[0]]), cuts.shape[-1])
        rows, left = np.split(left, [max(1, int(_BLOCK / bins))])
        pair = first.pair.stacked(parameters[:, rows])
        yield _finer(pair, counts[rows], cuts[rows], bin_weights[rows], bins, swapped=first.swapped)


def _every(cuts: _Array, stride: int) -> _Array:
    return cuts if stride == 1 or cuts.size < 2 else np.append(cuts[..., :-1:stride], cuts[..., -1:], axis=-1)


def _side_by_side(pairs: Pairs) -> Iterator[tuple[Pair, _Array]]:
    """Yield pairs with their counts; of a kind, some at a time and as one."""
    kinds: dict[Hashable, list[tuple[Pair, int]]] = {}
    for pair, count in pairs:
        kinds.setdefault(pair if pair.kind is None else pair.kind, []).append((pair, count))
    for alike in kinds.values():
        for start in range(0, len(alike), _ROWS):
            rows, counts = zip(*alike[start : start + _ROWS], strict=True)
            if len(rows) == 1:
                yield rows[0], np.array(float(counts[0]))
            else:
                parameters = np.array([pair.parameters for pair in rows], float)
                yield rows[0].stacked(parameters.T[..., None]), np.array(counts, float)


def survey(pairs: Pairs, delta: float) -> Survey:
    """Look at a composition for the first time, in the unswapped order.

    Parameters
    ----------
    pairs : sequence of (Pair, int)
    delta : float
        The smallest delta that matters; it decides which tails can be left out.
    """
    rounds = max(1.0, math.fsum(float(count) for _, count in pairs))
    reach = math.sqrt(2 * (math.log(rounds) - math.log(max(delta, _TINY) * _TAIL_PROPORTION)))
    # Of many parts each matters less, and so does where its cuts lie.
    stride = 1 if len(pairs) <= _MANY else 2 if len(pairs) <= _VERY_MANY else 4
    parts = [
        PlannedPart.cut(pair, counts, _every(pair.cuts(reach), stride), swapped=False)
        for pair, counts in _side_by_side([(pair, count) for pair, count in pairs if pair.variance == 0])
    ]
    variance = math.fsum(pair.variance * count for pair, count in pairs)
    return Survey(parts, variance)


@dataclass(frozen=True, slots=True)
class NumericalPlan:
    """What is inverted, where, and how smooth."""

    parts: tuple[PlannedPart, ...]
    variance: float
    saddle: Saddle
    smoothing: float

    @property
    def exact(self) -> bool:
        """Whether no closer look at the parts improves the bounds."""
        return not any(part.pair.continuous for part in self.parts)

    def work(self, *, upper: bool) -> ComposedLosses:
        """Return what is inverted for the upper bound, or for the lower one."""
        if upper:
            return ComposedLosses([(part.bins.split(), part.counts) for part in self.parts], self.variance)
        distributions = [(part.distribution, part.counts) for part in self.parts]
        return ComposedLosses(distributions, self.variance * (1 - 32 * UNIT))

    def even(self, bins: float) -> NumericalPlan:
        """Return the parts cut evenly into so many bins, whatever weighs there."""
        parts = tuple(part.recut(np.diff(part.cuts), bins) for part in self.parts)
        return NumericalPlan(parts, self.variance, self.saddle, self.smoothing)

    def mirrored(self) -> NumericalPlan:
        """Return the same choices for the other order."""
        parts = tuple(part.mirrored() for part in self.parts)
        return NumericalPlan(parts, self.variance, self.saddle, self.smoothing)

    def survey(self) -> Survey:
        """Return a closer look than the one that the plan was made from."""
        return Survey(self.parts, self.variance)


class Survey:
    """A composition in one order, looked at coarsely; see `survey` and `NumericalPlan.survey`.

    Parameters
    ----------
    parts : sequence of Part
        All pairs but the Gaussian ones.
    variance : float
        Of the Gaussian ones together.
    """

    def __init__(self, parts: Sequence[PlannedPart], variance: float) -> None:
        self.variance, self._parts = variance, parts
        self._tilted: tuple[float, list[Tilted]] = math.nan, []
        self._sums: FewRuns | None = None
        self._work = ComposedLosses([(part.distribution, part.counts) for part in parts], variance)
        self.infinite = self._work.infinite
        rounds = math.fsum(float(np.sum(part.counts)) for part in parts)
        self.many = sum(part.counts.size for part in parts) > _MANY
        runs = 0.0 if variance or not all(part.pair.continuous for part in parts) else rounds
        self.alone, self.two = runs == 1, runs == 2

    def mirrored(self) -> Survey:
        """Return the same look at the other order."""
        return Survey([part.mirrored() for part in self._parts], self.variance)

    def saddle_at_delta(self, log_delta: float) -> Saddle:
        """Return the saddle point for a given delta, and about which epsilon belongs to it."""
        tilt = _minimum(lambda c: (self._work.log_moments(c) - log_delta - np.log(c) - np.log1p(c)) / c)
        deviation, log_level = self._level(tilt)
        known = enumerated(self._work, upper=False, exact=True) if self.alone else None
        if self.two:
            return self.saddle_at_epsilon(max(0.0, self._few_runs(tilt).epsilon(log_delta)))
        found = Saddle(tilt, (log_level - log_delta) / tilt, log_delta, deviation)
        if known:
            return found._replace(epsilon=known.solve(log_delta))
        for _ in range(_ROUNDS if log_delta > _LARGE and found.epsilon > 0 else 0):
            # The point that is best for Chernoff's bound lies off the saddle where delta is large.
            there = self.saddle_at_epsilon(found.epsilon)
            epsilon = max(0.0, found.epsilon + (there.log_delta - log_delta) / there.tilt)
            found = Saddle(there.tilt, epsilon, log_delta, there.deviation)
        return found

    def saddle_at_epsilon(self, epsilon: float) -> Saddle:
        """Return the saddle point for a given epsilon, and about which delta belongs to it."""
        tilt = _minimum(lambda c: self._work.log_moments(c) - c * epsilon - np.log(c) - np.log1p(c))
        deviation, log_level = self._level(tilt)
        known = enumerated(self._work, upper=False, exact=True) if self.alone else None
        if self.two:
            log_delta, slope = self._few_runs(tilt).log_delta(epsilon)
            return Saddle(tilt, epsilon, min(0.0, log_delta), deviation, slope)
        log_delta = known.log_bound(epsilon)[0] if known else log_level - tilt * epsilon
        return Saddle(tilt, epsilon, min(0.0, log_delta), deviation)

    def saddle_at_tilt(self, tilt: float) -> Saddle:
        """Return the saddle point at a given tilt, and about which epsilon and delta belong to it."""
        deviation, log_level = self._level(tilt)
        mean = self.variance * (tilt + 0.5)
        for part, distribution in zip(self._parts, self._distributions(tilt), strict=True):
            mean += float(np.sum(part.counts * distribution.mean()))
        epsilon = max(0.0, mean - 1 / tilt - 1 / (1 + tilt))
        return Saddle(tilt, epsilon, min(0.0, log_level - tilt * epsilon), deviation)

    def log_moments(self, tilts: _Array) -> _Array:
        """Return about the log of the moment generating function at real points."""
        return self._work.log_moments(tilts)

    def _level(self, tilt: float) -> tuple[float, float]:
        """Return the tilted deviation, and the log of delta times ``exp(tilt * epsilon)``."""
        variance = self.variance + 1 / tilt**2 + 1 / (1 + tilt) ** 2
        for part, distribution in zip(self._parts, self._distributions(tilt), strict=True):
            variance += float(np.sum(part.counts * distribution.variance()))
        deviation = math.sqrt(variance)
        moment = float(self._work.log_moments(np.array([tilt]))[0])
        return deviation, moment - math.log(tilt) - math.log1p(tilt) - math.log(2.5 * deviation)

    def _few_runs(self, tilt: float) -> FewRuns:
        """Return the sums of the losses; which tilt they are made for matters little."""
        self._sums = self._sums or FewRuns(self._work, tilt)
        return self._sums

    def _distributions(self, tilt: float) -> list[Tilted]:
        """Return the tilted distributions; those of the last tilt are cached."""
        if self._tilted[0] != tilt:
            self._tilted = tilt, [part.distribution.tilted(tilt) for part in self._parts]
        return self._tilted[1]

    def plan(self, saddle: Saddle, error: float) -> NumericalPlan:
        """Return a plan whose two bounds are about ``error`` apart, measured in epsilon."""
        tilt, proportion = saddle.tilt, _SMOOTHING_PROPORTION
        if self.alone:
            # All bins but one lie on one side of epsilon: there, both bounds are the truth.
            parts = [part.recut(part.around(saddle.epsilon), _CLOSE_UP) for part in self._parts]
        elif saddle.slope < 0:
            parts = list(_recut(self._wishes_of_few(saddle, (1 - proportion) * error)))
        else:
            if self.many:
                # Of many parts all bins together cost more than the points of the line, if any are wanted.
                finest = self._wishes(tilt, error)
                enough = sum(float(wanted.sum()) for *_, wanted in finest) < 0.25 * self._work.losses
                proportion *= 2.0 if enough else 0.25
            parts = list(_recut(self._wishes(tilt, (1 - proportion) * error)))
        # The lower bound's factor exp(v (1 + z)) must stay near 1, however large the error may be.
        smoothing = min(proportion * error, _MAX_SMOOTHING) / (1 + tilt)
        if self.variance >= smoothing:
            smoothing = 0.0
        return NumericalPlan(tuple(parts), self.variance, saddle, smoothing)

    def _wishes(self, tilt: float, error: float) -> Iterator[_Wish]:
        """Yield how finely each part is to be cut, for an error of all together."""
        bin_weights = [
            part.bin_weights(distribution)
            for part, distribution in zip(self._parts, self._distributions(tilt), strict=True)
        ]
        # A part with n bins errs by the cube of its root over n**2; so all need the fewest bins.
        roots = [
            np.cbrt(part.counts * ((1 + tilt) / 6)) * bin_weight.sum(axis=-1)
            for part, bin_weight in zip(self._parts, bin_weights, strict=True)
        ]
        scale = math.sqrt(math.fsum(float(root.sum()) for root in roots) / error)
        return zip(self._parts, bin_weights, (scale * root for root in roots), strict=True)

    def _wishes_of_few(self, saddle: Saddle, error: float) -> Iterator[_Wish]:
        """Yield how finely each part is to be cut, by what its bins do to delta near epsilon."""
        few = self._few_runs(saddle.tilt)
        shapes = [part.bins.points.loss.shape for part in self._parts]
        rows = [
            (edges, np.exp(log_mass[: len(edges) - 1]))
            for part in self._parts
            for edges, log_mass in zip(
                np.atleast_2d(part.bins.edges), np.atleast_2d(part.distribution.log_mass), strict=True
            )
        ]
        moved = few.weights(saddle.epsilon, rows)
        # n bins of a part move its bounds apart by the cube of the sum of the roots over n**2.
        roots = [np.cbrt(weights) for weights in moved]
        falls = -saddle.slope * math.exp(max(saddle.log_delta, -600.0))
        scale = math.sqrt(math.fsum(float(root.sum()) for root in roots) / (error * falls))
        for part, shape in zip(self._parts, shapes, strict=True):
            bin_weights = np.array([roots.pop(0) for _ in range(math.prod(shape[:-1]))]).reshape(shape)
            wanted = scale * bin_weights.sum(axis=-1)
            yield part, bin_weights[..., ::-1] if part.bins.against else bin_weights, wanted


def _minimum(objective: _Objective) -> float:
    """Return approximately where a function of the tilt is smallest."""
    tilts = _FIRST_TILTS
    for _ in range(4):
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.nan_to_num(objective(tilts), nan=np.inf)
        best = int(np.argmin(values))
        centre = math.log(tilts[best])
        width = math.log(tilts[1] / tilts[0])
        tilts = np.exp(centre + width * _CLOSER)
    return math.exp(centre)
