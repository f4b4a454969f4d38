"""Where to cross the real axis, where to cut, how much to smooth: choices that cost width, never validity."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.privacy._outward import UNIT
from sfumato.privacy.accountant.inversion import Work
from sfumato.privacy.pairs.atoms import Atoms
from sfumato.privacy.pairs.bins import Bins
from sfumato.privacy.pairs.pair import Pair

__all__ = ["Pairs", "Part", "Plan", "Saddle", "Survey", "survey"]

_Array = NDArray[np.float64]
Pairs: TypeAlias = Sequence[tuple[Pair, int]]
_Objective: TypeAlias = Callable[[_Array], _Array]

_FIRST_TILTS: Final = np.exp(np.linspace(math.log(1e-7), math.log(1e8), 23))
_CLOSER: Final = np.linspace(-1.0, 1.0, 7)
_MANY: Final = 64
_MOST_BINS: Final = 40_000
_TAIL_SHARE: Final = 1e-6
"""Mass that is not followed, as a share of delta."""
_SMOOTHING_SHARE: Final = 0.4
_TINY: Final = 1e-300


class Saddle(NamedTuple):
    """About where the integrand has its saddle point, and the values of the composition there.

    ``deviation`` is the standard deviation of the tilted loss with the kernel's own spread.
    """

    tilt: float
    epsilon: float
    log_delta: float
    deviation: float


@dataclass(frozen=True, slots=True)
class Part:
    """One pair in one order, cut, with the law of its loss from below."""

    pair: Pair
    count: int
    swapped: bool
    cuts: _Array
    bins: Bins
    law: Atoms

    @classmethod
    def cut(cls, pair: Pair, count: int, cuts: _Array, *, swapped: bool) -> Part:
        """Cut a pair near the given cuts."""
        cuts = pair.snapped(cuts)
        bins = pair.bins(cuts, swapped=swapped)
        return cls(pair, count, swapped, cuts, bins, bins.merged())

    def mirrored(self) -> Part:
        """Return the other order, cut in the same places."""
        return Part.cut(self.pair, self.count, self.cuts, swapped=not self.swapped)

    def density(self, tilt: float) -> _Array:
        """Return the best number of bins per unit of outcome, up to a factor.

        A bin's two bounds differ by its tilted mass times the square of its width in loss; under a fixed
        number of bins the sum is least where each contributes the cube root.
        """
        weights = self.law.tilted(tilt).weights[: len(self.bins.points.loss)]
        widths = np.diff(self.bins.edges)
        if self.swapped:
            weights, widths = weights[::-1], widths[::-1]
        steps = np.diff(self.cuts)
        return np.asarray(np.cbrt(weights / steps * (widths / steps) ** 2))

    def recut(self, density: _Array, wanted: float) -> Part:
        """Return the part with about ``wanted`` bins, no fewer than the pair needs anywhere."""
        if not self.pair.continuous:
            return self
        steps = np.diff(self.cuts)
        share = density * steps
        heights = min(wanted, _MOST_BINS) * share / max(float(share.sum()), _TINY)
        return Part.cut(self.pair, self.count, self.pair.finer(self.cuts, heights), swapped=self.swapped)


def _every(cuts: _Array, stride: int) -> _Array:
    return cuts if stride == 1 or len(cuts) < 2 else np.append(cuts[:-1:stride], cuts[-1])


def survey(pairs: Pairs, delta: float) -> Survey:
    """Look at a composition for the first time, in the unswapped order.

    Parameters
    ----------
    pairs : sequence of (Pair, int)
    delta : float
        The least delta that matters; it tells which tails can be left out.
    """
    rounds = max(1.0, math.fsum(float(count) for _, count in pairs))
    reach = math.sqrt(2 * (math.log(rounds) - math.log(max(delta, _TINY) * _TAIL_SHARE)))
    # Of many parts each matters less, and so does where its cuts lie.
    stride = 1 if len(pairs) <= _MANY else 2
    parts = [
        Part.cut(pair, count, _every(pair.cuts(reach), stride), swapped=False)
        for pair, count in pairs
        if pair.variance == 0
    ]
    variance = math.fsum(pair.variance * count for pair, count in pairs)
    return Survey(parts, variance)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is inverted, where, and how smooth."""

    parts: tuple[Part, ...]
    variance: float
    saddle: Saddle
    smoothing: float

    def work(self, *, upper: bool) -> Work:
        """Return what is inverted for the upper bound, or for the lower one."""
        if upper:
            return Work([(part.bins.split(), part.count) for part in self.parts], self.variance)
        laws = [(part.law, part.count) for part in self.parts]
        return Work(laws, self.variance * (1 - 32 * UNIT))

    def mirrored(self) -> Plan:
        """Return the same choices for the other order."""
        parts = tuple(part.mirrored() for part in self.parts)
        return Plan(parts, self.variance, self.saddle, self.smoothing)

    def survey(self) -> Survey:
        """Return a closer look than the one that the plan was made from."""
        return Survey(self.parts, self.variance)


class Survey:
    """A composition in one order, looked at coarsely; see `survey` and `Plan.survey`.

    Parameters
    ----------
    parts : sequence of Part
        All pairs but the Gaussian ones.
    variance : float
        Of the Gaussian ones together.
    """

    def __init__(self, parts: Sequence[Part], variance: float) -> None:
        self.variance, self._parts = variance, parts
        self._work = Work([(part.law, part.count) for part in parts], variance)
        self.infinite = self._work.infinite

    def mirrored(self) -> Survey:
        """Return the same look at the other order."""
        return Survey([part.mirrored() for part in self._parts], self.variance)

    def saddle_at_delta(self, log_delta: float) -> Saddle:
        """Return the saddle point for a given delta, and about which epsilon belongs to it."""
        tilt = _least(lambda c: (self._work.log_moments(c) - log_delta - np.log(c) - np.log1p(c)) / c)
        deviation, log_level = self._level(tilt)
        return Saddle(tilt, (log_level - log_delta) / tilt, log_delta, deviation)

    def saddle_at_epsilon(self, epsilon: float) -> Saddle:
        """Return the saddle point for a given epsilon, and about which delta belongs to it."""
        tilt = _least(lambda c: self._work.log_moments(c) - c * epsilon - np.log(c) - np.log1p(c))
        deviation, log_level = self._level(tilt)
        return Saddle(tilt, epsilon, min(0.0, log_level - tilt * epsilon), deviation)

    def _level(self, tilt: float) -> tuple[float, float]:
        """Return the tilted deviation, and the log of delta times ``exp(tilt * epsilon)``."""
        variance = self.variance + 1 / tilt**2 + 1 / (1 + tilt) ** 2
        for part in self._parts:
            variance += part.count * part.law.tilted(tilt).variance()
        deviation = math.sqrt(variance)
        moment = float(self._work.log_moments(np.array([tilt]))[0])
        return deviation, moment - math.log(tilt) - math.log1p(tilt) - math.log(2.5 * deviation)

    def plan(self, saddle: Saddle, error: float) -> Plan:
        """Return a plan whose two bounds are about ``error`` apart, measured in epsilon."""
        tilt = saddle.tilt
        smoothing = _SMOOTHING_SHARE * error / (1 + tilt)
        if self.variance >= smoothing:
            smoothing = 0.0
        densities, costs = [], []
        for part in self._parts:
            density = part.density(tilt)
            densities.append(density)
            total = float((density * np.diff(part.cuts)).sum())
            costs.append(part.count * (1 + tilt) / 6 * total**3)
        # Least number of bins in all, if a part with n bins errs by cost / n**2.
        scale = math.sqrt(math.fsum(np.cbrt(costs)) / ((1 - _SMOOTHING_SHARE) * error)) if costs else 0.0
        parts = tuple(
            part.recut(density, scale * float(np.cbrt(cost)))
            for part, density, cost in zip(self._parts, densities, costs, strict=True)
        )
        return Plan(parts, self.variance, saddle, smoothing)


def _least(objective: _Objective) -> float:
    """Return about where a function of the tilt is least."""
    tilts = _FIRST_TILTS
    for _ in range(4):
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.nan_to_num(objective(tilts), nan=np.inf)
        best = int(np.argmin(values))
        centre = math.log(tilts[best])
        width = math.log(tilts[1] / tilts[0])
        tilts = np.exp(centre + width * _CLOSER)
    return math.exp(centre)
