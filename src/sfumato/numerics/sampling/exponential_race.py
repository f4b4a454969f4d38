"""Exact orders of weighted candidates: one exponential race, as one round of Gumbel noise makes it.

Each candidate's time of arrival is exponential with its weight as rate, so the first of any set comes with
probability proportional to its weight, whatever came before. Logs of the times are bounded in floats; only
those that may be among the first are retained, and those of them that floats cannot distinguish are compared
with exact integers and as many further random bits as it takes.

The time does not follow the weights, but for the rare comparisons that stay open.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cmp_to_key

import numpy as np
from numpy.typing import NDArray

from sfumato._check import integer, refuse
from sfumato.numerics.certified.fixed_point import log_bounds
from sfumato.numerics.randomness.source import RandomSource, Rng, random_source
from sfumato.numerics.randomness.uniform import UniformBits
from sfumato.numerics.sampling.choice import checked

__all__ = ["choose_distinct"]

_WORD = 64
_SPARE = 64
_CHUNK = 1 << 15
_SLACK = 2.0**-30
_LARGEST_RATE = 2**64

_Floats = NDArray[np.float64]


def choose_distinct(
    gaps: NDArray[np.int64],
    rate: int | float | Fraction,
    count: int,
    *,
    multiplicity: NDArray[np.int64] | None = None,
    rng: Rng = None,
) -> NDArray[np.int64]:
    """Choose one after another, each among those not yet chosen, with the weights of `choose`, exactly.

    Parameters
    ----------
    gaps : int64 array of shape (n,)
        Of each candidate, less than 2^63 apart; only differences matter, so negated scores will do.
    rate : int, float or Fraction
        Positive, at most 2^64; a float means the rational it is.
    count : int
        How many; at most the number of candidates of positive multiplicity.
    multiplicity : int64 array of shape (n,), optional
        Factors of the weights, from 0 to 2^62; 1 each unless given.
    rng : None, int, numpy Generator or RandomSource
        None for choices that protect; anything else simulates.

    Returns
    -------
    int64 array of shape (count,)
        Distinct indices in the order in which they were chosen.

    Raises
    ------
    ParameterError
        If there are fewer candidates, or a type or shape does not fit.

    Notes
    -----
    This is the order of the ``count`` largest values of ``log(weight) + Gumbel noise``: peeling (Durfee,
    Rogers 2019).

    Examples
    --------
    >>> sorted(choose_distinct(np.array([5, 0, 9]), 2, 3, rng=1).tolist())
    [0, 1, 2]
    """
    source = random_source(rng)
    whole, exact, counts = checked(gaps, rate, multiplicity)
    if exact > _LARGEST_RATE:
        refuse("rate", "be at most 2**64", rate, "measure gaps in larger steps")
    candidates = whole.size if counts is None else np.count_nonzero(counts)
    if integer("count", count, remedy="pass how many are wanted") > candidates:
        refuse("count", "be at most the number of candidates", count, "ask for fewer")
    if not count:
        return np.empty(0, np.int64)
    return _Race(whole, exact, counts, source).first(count)


class _Race:
    """The logs of the times of arrival: ``log(-log(1 - U)) + rate gap - log(multiplicity)``.

    Notes
    -----
    Of U, 64 bits v are known. In floats U is the middle p of its range, at most ``1 - 2^-53``. That moves the
    log by at most ``1 / (v + 1/2)`` where p is small, and by ``2^-51 / (1 - p)`` where it is near 1, but for
    v = 0, where there is no lower bound, and for the last v, where there is no upper one. Everything else is
    right to far less than `_SLACK`, relative to 1 and to the largest term.
    """

    def __init__(
        self,
        gaps: NDArray[np.int64],
        rate: Fraction,
        multiplicity: NDArray[np.int64] | None,
        source: RandomSource,
    ) -> None:
        self._gaps, self._rate, self._multiplicity, self._source = gaps, rate, multiplicity, source
        self._minimum = int(gaps.min() if multiplicity is None else gaps[multiplicity > 0].min())
        self._words = source.words(gaps.size)
        self._uniforms: dict[int, UniformBits] = {}
        self._low, self._high = np.empty(gaps.size), np.empty(gaps.size)
        with np.errstate(divide="ignore"):
            for start in range(0, gaps.size, _CHUNK):  # the temporaries stay in the cache
                part = slice(start, start + _CHUNK)
                self._low[part], self._high[part] = self._bounds(part)

    def _bounds(self, part: slice) -> tuple[_Floats, _Floats]:
        words = self._words[part]
        middle = words.astype(np.float64) + 0.5
        uniform = np.minimum(middle * 2.0**-_WORD, 1 - 2.0**-53)
        distance = (self._gaps[part] - self._minimum) * float(self._rate)
        times = np.log(-np.log1p(-uniform)) + distance
        slack = _SLACK * (1 + np.abs(distance)) + 1 / middle + 2.0**-51 / (1 - uniform)
        if self._multiplicity is not None:
            times -= np.log(self._multiplicity[part])  # infinitely late where it is 0
        low, high = times - slack, times + slack
        low[words == 0] = -np.inf
        high[words == np.uint64(2**_WORD - 1)] = np.inf
        return low, high

    def first(self, count: int) -> NDArray[np.int64]:
        """Return the first to arrive, in order."""
        last = np.partition(self._high, count - 1)[count - 1]
        selected = np.flatnonzero(self._low <= last)
        if self._multiplicity is not None:
            selected = selected[self._multiplicity[selected] > 0]
        selected = selected[np.argsort(self._low[selected] + self._high[selected], kind="stable")]
        # A border is sure where all before it are earlier than all behind it.
        before = np.maximum.accumulate(self._high[selected])[:-1]
        behind = np.minimum.accumulate(self._low[selected][::-1])[::-1][1:]
        order: list[int] = []
        for group in np.split(selected, np.flatnonzero(before < behind) + 1):
            if len(order) >= count:
                break
            members = group.tolist()
            order += sorted(members, key=cmp_to_key(self._compare)) if len(members) > 1 else members
        return np.array(order[:count], np.int64)

    def _compare(self, one: int, other: int) -> int:
        """Decide exactly which of two arrives first: a negative number for the one."""
        while True:
            first, second = self._enclosed(one), self._enclosed(other)
            if first[1] < second[0]:
                return -1
            if second[1] < first[0]:
                return 1
            for index in sorted((one, other)):
                self._uniform(index).extend()

    def _uniform(self, index: int) -> UniformBits:
        if index not in self._uniforms:
            self._uniforms[index] = UniformBits(int(self._words[index]), _WORD, self._source)
        return self._uniforms[index]

    def _enclosed(self, index: int) -> tuple[Fraction | float, Fraction | float]:
        """Bound the log of a time of arrival, by what is known of its uniform."""
        uniform = self._uniform(index)
        bits, one = uniform.width + _SPARE, 1 << uniform.width
        distance = self._rate * (int(self._gaps[index]) - self._minimum)
        low: Fraction | float = -math.inf
        high: Fraction | float = math.inf
        factor = 0, 0
        if self._multiplicity is not None:
            factor = log_bounds(Fraction(int(self._multiplicity[index])), bits)
        if uniform.value:
            time = Fraction(log_bounds(Fraction(one, one - uniform.value), bits)[0], 1 << bits)
            low = Fraction(_log(time, bits)[0] - factor[1], 1 << bits) + distance
        if uniform.value + 1 < one:
            time = Fraction(log_bounds(Fraction(one, one - uniform.value - 1), bits)[1], 1 << bits)
            high = Fraction(_log(time, bits)[1] - factor[0], 1 << bits) + distance
        return low, high


def _log(x: Fraction, bits: int) -> tuple[int, int]:
    """Bound ``2^bits log(x)`` for any positive x."""
    if x >= 1:
        return log_bounds(x, bits)
    low, high = log_bounds(1 / x, bits)
    return -high, -low
