"""Quantiles of rows that are counted by bin: by the exponential mechanism, one or a few, of many groups."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple, cast, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.additive import as_number, check_informative
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number, drawn_epsilon
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.statistics.quantile.bin_sampling import BinnedPart, BinSampler, finest_target
from sfumato.mechanisms.statistics.quantile.count_tree import TreeCounts
from sfumato.numerics.decimals import outward
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.privacy.leaves.exponential import Exponential
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["BinMechanism", "BinnedQuantiles", "BinnedRows", "rows_by_group"]

_PARTS: Final = 1 << 16
_MAX_QUANTILES: Final = 1 << 10

Integers = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True)
class BinnedRows:
    """The rows of many groups by bin: raw data.

    Parameters
    ----------
    counts : TreeCounts
        What the groups 0, 1, ... hold in the bins 0, 1, ...; none is negative.
    bins, groups : int
        How many there are, the empty ones included: both public.
    """

    counts: TreeCounts
    bins: int
    groups: int


class _Choice(NamedTuple):
    """One quantile, chosen between two that were chosen before, or the ends."""

    place: int
    low: int | None
    high: int | None
    inner: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BinMechanism(Mechanism):
    """What all choices among bins share: their range, and the rows of a unit.

    Parameters
    ----------
    epsilon : int, float or Fraction
        The range of one choice in one group.
    rows : int
        The most rows of one unit in one group.
    groups : int
        The most groups that one unit may have so many rows in; 1 where ``rows`` bounds its rows in all
        groups together.
    """

    epsilon: Number
    rows: int = 1
    groups: int = 1

    def __post_init__(self) -> None:
        epsilon = as_number("epsilon", self.epsilon, "pass the range of one choice, such as 0.5")
        check_informative(epsilon)
        object.__setattr__(self, "epsilon", Fraction(epsilon))
        _check.integer("rows", self.rows, minimum=1)
        _check.integer("groups", self.groups, minimum=1)

    @property
    def neighboring(self) -> Neighboring:
        """Who is protected: one unit, added or removed."""
        return Neighboring.ADD_REMOVE

    @property
    @abstractmethod
    def choices(self) -> int:
        """How many choices one row takes part in."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What is chosen, for explanations."""

    @property
    @abstractmethod
    def remark(self) -> str:
        """What to know of it, a sentence."""

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        one = Exponential(outward(drawn_epsilon(self.epsilon)), neighboring=self.neighboring)
        return one * (self.choices * self.groups)

    @property
    def scale(self) -> Fraction:
        """By how many rows a rank is off, at most, for each factor of e that an answer is less likely."""
        return 2 * self.rows / drawn_epsilon(self.epsilon)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BinnedQuantiles(BinMechanism):
    r"""One quantile or a few of the rows of each group, chosen among public bins.

    Parameters
    ----------
    quantiles : sequence of int, float or Fraction
        From 0 to 1, each above the one before it.
    epsilon : int, float or Fraction
        The range of one choice: what one quantile costs in one group.
    rows : int
        The most rows of one unit in one group.
    groups : int
        The most groups that one unit may have so many rows in; 1 where ``rows`` bounds its rows in all
        groups together.

    Notes
    -----
    Guarantee: under adding or removing one unit, the loss is that of ``d * groups`` choices of bounded
    range epsilon (`sfumato.privacy.Exponential`), :math:`d = \lceil\log_2(m + 1)\rceil` for m quantiles; the
    bins and the list of groups are public.

    *One quantile.* The score of a bin is minus the distance s of its ranks from the target, in rows: one row
    moves it by at most :math:`\max(p, 1-p)`, in either direction, so k rows of a unit move two scores by at
    most :math:`2 k \max(p, 1-p)` against one another, which some data attain (`BinSampler`): scores are not
    monotone, and there is no factor of two to be had. A bin weighs :math:`\exp(-\epsilon s / (2 k
    \max(p, 1-p)))`, so the log-probabilities of two bins move by at most epsilon against one another.

    *Several.* The middle one is chosen first, as a point within a bin: a bin has :math:`2^{16}` of them, and
    the rows of a bin are distributed evenly over it. It cuts the group into two parts, and each half of the
    other quantiles is chosen in its own, with the target's rank within it; the last ones are chosen among the
    bins.
    One unit's rows may lie in several parts of a level. Its weights :math:`w_1, w_2, \dots` in them sum to at
    most k, and the choice in part i moves by at most :math:`\epsilon w_i / k`. Given what the levels before
    released, the choices of a level are independent, so their log-probabilities add up, and so do the ranges:
    a level is one choice of range epsilon whatever the unit has where. Levels compose adaptively. The same
    sum holds over groups where the rows in all groups together are bounded.

    Draws are exact. Answers never cross. In a group without rows every bin is as likely.

    References
    ----------
    Smith, "Privacy-preserving statistical estimation with optimal convergence rates" (STOC 2011); Kaplan,
    Schnapp, Stemmer, "Differentially private approximate quantiles" (ICML 2022), here for units of many rows
    and for bins that hold many; Durfee, Rogers, "Practical differentially private top-k selection with
    pay-what-you-get composition" (NeurIPS 2019), bounded range.

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.arange(100)
    >>> counts = TreeCounts(np.zeros(100, np.int64), ages, np.full(100, 20))
    >>> quartiles = BinnedQuantiles(quantiles=(0.25, 0.5, 0.75), epsilon=1, rows=2)
    >>> quartiles.release(BinnedRows(counts, bins=121, groups=1), rng=3).value.tolist()
    [[25, 50, 74]]
    """

    quantiles: Sequence[Number]

    def __post_init__(self) -> None:
        BinMechanism.__post_init__(self)
        object.__setattr__(self, "quantiles", _orders(self.quantiles))

    @property
    def choices(self) -> int:
        """The levels."""
        return len(self.quantiles).bit_length()

    @property
    def words(self) -> str:
        """What is chosen."""
        return "a quantile" if len(self.quantiles) == 1 else f"{len(self.quantiles)} quantiles"

    @property
    def remark(self) -> str:
        """That intervals cost."""
        return "An interval is the whole range, unless interval_epsilon pays for another."

    def rank_stddev(self, bins: int) -> float:
        r"""Return a bound on the root of the mean square of the error in ranks, whatever the data.

        Parameters
        ----------
        bins : int
            How many bins there are.

        Notes
        -----
        With c candidates of which one has the target's rank, :math:`P(s > t) \le c e^{-t/b}` for a choice
        of scale b. So :math:`E s^2 \le t_0^2 + 2 b t_0 + 2 b^2` with :math:`t_0 = b \log c`. The error of a
        quantile is at most that of its own choice and the larger of those that it lies between.
        """
        total = 0.0
        for scale, candidates in self._levels(bins):
            far = scale * math.log(candidates)
            total += math.sqrt(far * far + 2 * scale * far + 2 * scale * scale)
        return total

    def rank_half_width(self, bins: int, level: float) -> float:
        r"""Return by how many ranks a quantile is off, at most, with such a probability, whatever the data.

        Parameters
        ----------
        bins : int
            How many bins there are.
        level : float

        Notes
        -----
        With c candidates of which one has the target's rank, and so weighs 1, those that are off by more than
        t weigh less than :math:`r = (c - 1) e^{-t/b}` together, for a choice of scale b: they are chosen with
        probability at most :math:`r / (1 + r)`, which some data attain. Each level of choices may fail with
        an equal part of 1 - ``level``. The error of a quantile is at most that of its own choice and the
        larger of those that it lies between, which are of the levels before.

        Examples
        --------
        >>> BinnedQuantiles(quantiles=(0.5,), epsilon=1).rank_half_width(121, 0.95)
        7.7319...
        """
        fails = (1 - level) / self.choices
        return sum(
            scale * max(0.0, math.log((candidates - 1) * (1 - fails) / fails))
            for scale, candidates in self._levels(bins)
            if candidates > 1
        )

    def _levels(self, bins: int) -> Iterator[tuple[float, int]]:
        """Return of each level of choices the largest scale, and how many candidates there are at most."""
        for level in range(self.choices):
            choices = [choice for depth, choice in self._plan() if depth == level]
            slope = max(max(target, 1 - target) for target in map(self._target, choices))
            yield float(self.scale * slope), bins * (_PARTS if choices[0].inner else 1)

    def typical_stddev(self, orders: Sequence[Number]) -> float:
        """Return the standard deviation of the error in ranks where rows are even, of the worst of some.

        Parameters
        ----------
        orders : sequence of int, float or Fraction
            Some of the quantiles.

        Notes
        -----
        A choice of scale b then errs by about a Laplace distribution of this scale. A quantile between two
        others inherits of each one's error what its order is nearer to it.
        """
        errors: dict[int | None, float] = {None: 0.0}
        for _, choice in self._plan():
            target = float(self._target(choice))
            own = math.sqrt(2) * float(self.scale) * max(target, 1 - target)
            inherited = (1 - target) * errors[choice.low], target * errors[choice.high]
            errors[choice.place] = math.hypot(own, *inherited)
        wanted = {Fraction(order) for order in orders}
        return max(errors[place] for place, order in enumerate(self.quantiles) if order in wanted)

    def release(self, value: BinnedRows, rng: Rng = None) -> Release:
        """Release the quantiles of all groups.

        Parameters
        ----------
        value : BinnedRows
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of an int64 array of shape (groups, m): bins, not falling along a row.
        """
        source = random_source(rng)
        return self._release_as(Release, self._bins(value, source), source)

    def _bins(self, value: BinnedRows, source: RandomSource) -> Integers:
        parts = _PARTS if len(self.quantiles) > 1 else 1
        span = 2 * parts * value.bins
        found = np.zeros((value.groups, len(self.quantiles)), np.int64)
        points = np.zeros_like(found)
        groups = list(rows_by_group(value))
        for _, choice in self._plan():
            sampler = self._sampler(choice, parts)
            for group, (leaves, counts) in enumerate(groups):
                low = 0 if choice.low is None else int(points[group, choice.low])
                high = span if choice.high is None else int(points[group, choice.high])
                part = BinnedPart(leaves, counts, parts, low, high)
                if choice.inner:
                    points[group, choice.place] = point = sampler.draw_point(part, source)
                    found[group, choice.place] = point // (2 * parts)
                else:
                    found[group, choice.place] = sampler.draw_bin(part, source)
        return found

    def _plan(self) -> Iterator[tuple[int, _Choice]]:
        """Return the choices with their levels, from the first level on."""
        parts: list[tuple[int, int, int | None, int | None]] = [(0, len(self.quantiles), None, None)]
        level = 0
        while parts:
            below: list[tuple[int, int, int | None, int | None]] = []
            for first, last, low, high in parts:
                middle = (first + last) // 2
                yield level, _Choice(middle, low, high, last - first > 1)
                if first < middle:
                    below.append((first, middle, low, middle))
                if middle + 1 < last:
                    below.append((middle + 1, last, middle, high))
            parts, level = below, level + 1

    def _target(self, choice: _Choice) -> Fraction:
        """Return the quantile's order within its part."""
        exact = cast("tuple[Fraction, ...]", self.quantiles)
        low = Fraction(0) if choice.low is None else exact[choice.low]
        high = Fraction(1) if choice.high is None else exact[choice.high]
        target = (exact[choice.place] - low) / (high - low)
        return target.limit_denominator(finest_target(_PARTS if len(exact) > 1 else 1))

    def _sampler(self, choice: _Choice, parts: int) -> BinSampler:
        target = self._target(choice)
        most = max(target.numerator, target.denominator - target.numerator)
        rate = drawn_epsilon(self.epsilon) / (2 * most * self.rows * 2 * parts)
        return BinSampler(target, rate, outer_low=choice.low is None, outer_high=choice.high is None)


def rows_by_group(value: BinnedRows) -> Iterator[tuple[Integers, Integers]]:
    """Return the bins that hold rows of each group, rising, and how many each holds."""
    counts = value.counts
    keys = counts.groups * value.bins + np.clip(counts.leaves, 0, value.bins - 1)
    known, sums = keys, counts.counts
    if (keys[1:] <= keys[:-1]).any():  # else each bin comes once, in order
        known, inverse = np.unique(keys, return_inverse=True)
        sums = np.zeros(len(known), np.int64)
        np.add.at(sums, inverse, counts.counts)
    known, sums = known[sums > 0], sums[sums > 0]
    borders = np.searchsorted(known, np.arange(value.groups + 1) * value.bins)
    for group in range(value.groups):
        of = slice(borders[group], borders[group + 1])
        yield known[of] - group * value.bins, sums[of]


def _orders(given: object) -> tuple[Fraction, ...]:
    rule = "be numbers from 0 to 1, each above the one before it"
    if isinstance(given, str) or not isinstance(given, Sequence) or not 0 < len(given) < _MAX_QUANTILES:
        _check.refuse("quantiles", f"{rule}, at least one", given, "pass (0.5,) for the median")
    found: list[Fraction] = []
    for number in given:
        exact = (
            Fraction(0) if number == 0 else _check.fraction("quantiles", number, "pass 0.5 for the median")
        )
        if exact > 1 or (found and exact <= found[-1]):
            _check.refuse("quantiles", rule, number, "pass 0.5 for the median")
        found.append(exact)
    return tuple(found)
