"""Rank correlations: Kendall's tau and Spearman's rho, and tests of independence on them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.query.records import as_table
from sfumato.mechanisms.statistics.hypothesis_test.counted_statistic import (
    CountedStatistic,
    order_of,
    real_numbers,
)
from sfumato.mechanisms.statistics.hypothesis_test.p_value import HypothesisTestResult
from sfumato.mechanisms.statistics.null_draws import Alternative
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["KendallTau", "SpearmanRho"]

_DRAWS: Final = 999
_FEW: Final = 512
_AT_ONCE: Final = 1 << 9
_Array = NDArray[np.float64]
_Ranks = NDArray[np.int64]


class _RankCorrelation(CountedStatistic):
    """A statistic of the ranks of two numbers of each record."""

    __slots__ = ()

    @abstractmethod
    def _of_ranks(self, first: _Ranks, second: _Ranks) -> Fraction:
        """Return the statistic of both columns' ranks, from 0."""

    @abstractmethod
    def _drawn_exactly(self, n: NDArray[np.int64], generator: np.random.Generator) -> _Array:
        """Return statistics of few records each in orders that are all equally likely."""

    def _statistic(self, data: Any, source: RandomSource) -> tuple[Fraction, tuple[int, ...]]:
        table = real_numbers(as_table(data, 2))
        ranks = [_ranks(table[:, column], source) for column in (0, 1)]
        size = len(table)
        return self._of_ranks(*ranks) if size else Fraction(0), (size,)

    def _drawn(self, counts: NDArray[np.int64], generator: np.random.Generator) -> _Array:
        if int(counts.max()) > _FEW:
            return self._normal(counts, generator)
        return self._drawn_exactly(counts[:, 0], generator)

    def test(
        self,
        release: LatticeRelease,
        *,
        n: int | None = None,
        alternative: Alternative = "two-sided",
        draws: int = _DRAWS,
        rng: int | np.random.Generator | None = None,
    ) -> HypothesisTestResult:
        """Return the p-value of a release: post-processing, free of charge.

        Parameters
        ----------
        release : LatticeRelease
            Of this query.
        n : int, optional
            How many records there are, where that is public: under replace-one or zero-out.
        alternative : {"two-sided", "greater", "less"}
            Whether both numbers tend to rise together, or one while the other falls.
        draws : int
            How many statistics are drawn under the null hypothesis; at least 19.
        rng : None, int or numpy Generator
            For these draws; they need no secrecy.

        Returns
        -------
        HypothesisTestResult
            Its statistic is the correlation in standard errors, of sampling and noise; its p-value is the
            rank among drawn ones.

        Raises
        ------
        NeighboringMismatch
            If n is given and the release is under add/remove.

        Notes
        -----
        Where both numbers are independent all orders are equally likely, whatever their distributions: for a
        public n the p-value is valid for any number of records and of draws. A private n is not known: see
        `WilcoxonSignedRank.test`. Beyond 512 records the statistic is drawn by its normal limit.
        """
        return self._tested(release, n=n, alternative=alternative, draws=draws, rng=rng)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KendallTau(_RankCorrelation):
    r"""Kendall's rank correlation of two numbers per record; the number of records is private.

    Notes
    -----
    K is the number of pairs of records that both numbers put in the same order, less that of the others.
    Released are :math:`K/n` and n, with one noise; tau is :math:`2K/(n(n-1))`.

    Guarantee: a record that is added is in n new pairs, that change K by d. So :math:`K/n` moves by
    :math:`|dn - K|/(n(n+1))`, and as :math:`|K| \le n(n-1)/2` by less than 3/2. A record that is replaced
    changes :math:`n - 1` pairs, and moves it by at most :math:`2(n-1)/n < 2`, and n not at all. The number of
    records has an eighth of the weight. Equal numbers are ordered at random, by keys that do not depend on
    them: the bound holds for all keys, and many ties move tau towards 0. NaN counts as 0.

    References
    ----------
    Kusner, Sun, Sridharan, Weinberger, "Private causal inference" (AISTATS 2016), with tau for a public n,
    which a replaced record moves by at most 4/n.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> noisy = Laplace.for_query(KendallTau(), epsilon=1.0)
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=1000)
    >>> data = np.stack([x, np.exp(x + rng.normal(size=1000))], axis=1)
    >>> release = noisy.release(data, rng=1)
    >>> round(noisy.query.estimate(release), 1), noisy.query.test(release, rng=2).p_value
    (0.5, 0.001)
    """

    @property
    def _moves(self) -> tuple[int | Fraction, int | Fraction]:
        return Fraction(3, 2), 2

    def _of_ranks(self, first: _Ranks, second: _Ranks) -> Fraction:
        size = first.size
        along = np.empty(size, np.int64)
        along[first] = second
        return Fraction(size * (size - 1) // 2 - 2 * _inversions(along), size)

    def _variance(self, counts: _Array) -> _Array:
        n = counts[:, 0]
        return np.asarray((n - 1) * (2 * n + 5) / (18 * n))

    def _drawn_exactly(self, n: NDArray[np.int64], generator: np.random.Generator) -> _Array:
        # The number of inversions is a sum of independent uniform numbers below 1, 2, ..., n.
        place = np.arange(1, int(n.max()) + 1)
        below = np.floor(generator.random((n.size, place.size)) * place)
        found = np.where(place <= n[:, None], below, 0).sum(axis=1)
        return np.asarray((n * (n - 1) / 2 - 2 * found) / n)

    def estimate(self, release: LatticeRelease) -> float:
        """Return tau.

        Parameters
        ----------
        release : LatticeRelease
            Of this query.

        Returns
        -------
        float
            From -1 to 1.
        """
        value, counts = self._read(release)
        return float(np.clip(2 * value / (counts[0] - 1), -1, 1))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SpearmanRho(_RankCorrelation):
    r"""Spearman's rank correlation of two numbers per record; the number of records is private.

    Notes
    -----
    With a and b twice a record's ranks less :math:`n + 1` (its smaller records less its larger ones), Q is
    the sum of ab. Released are :math:`3Q/(n(n+1))` and n, with one noise; rho is :math:`3Q/(n(n^2-1))`.

    Guarantee: let a record that is added have a and b. It moves every other record's by 1 or -1, the first
    up for the :math:`(n-a)/2` records above it. The other records' b are :math:`n-1, n-3, \dots, 1-n` in some
    order, of which the k largest less the others add up to :math:`2k(n-k)`. So Q moves by at most
    :math:`ab + (n^2-a^2)/2 + (n^2-b^2)/2 + n = n^2 + n - (a-b)^2/2`, and by no less than its opposite, with
    :math:`a + b`: by :math:`n^2 + n` at most. With :math:`|Q| \le n(n^2-1)/3` the first answer moves by less
    than 5. A record that is replaced moves it by less than 6 (as Q by twice as much for :math:`n - 1`), and
    n not at all. The number of records has an eighth of the weight. Ties are as in `KendallTau`, whose test
    has somewhat more power, since its noise is smaller against its standard deviation.

    References
    ----------
    Kusner, Sun, Sridharan, Weinberger, "Private causal inference" (AISTATS 2016), with rho for a public n,
    which a replaced record moves by less than 6/n.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> noisy = Laplace.for_query(SpearmanRho(), epsilon=1.0)
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=1000)
    >>> data = np.stack([x, np.exp(x + rng.normal(size=1000))], axis=1)
    >>> release = noisy.release(data, rng=1)
    >>> round(noisy.query.estimate(release), 1), noisy.query.test(release, rng=2).p_value
    (0.7, 0.001)
    """

    @property
    def _moves(self) -> tuple[int | Fraction, int | Fraction]:
        return 5, 6

    def _of_ranks(self, first: _Ranks, second: _Ranks) -> Fraction:
        size = first.size
        products = (2 * first - (size - 1)) * (2 * second - (size - 1))
        total = sum(np.add.reduceat(products, np.arange(0, size, _AT_ONCE)).tolist())
        return Fraction(3 * total, size * (size + 1))

    def _variance(self, counts: _Array) -> _Array:
        return np.asarray(counts[:, 0] - 1)

    def _drawn_exactly(self, n: NDArray[np.int64], generator: np.random.Generator) -> _Array:
        most = int(n.max())
        inside = np.arange(most) < n[:, None]
        keys = np.where(inside, generator.random(inside.shape), 2.0)
        centered = 2 * np.argsort(keys, axis=1) - (n[:, None] - 1)
        products = np.where(inside, centered * (2 * np.arange(most) - (n[:, None] - 1)), 0)
        return np.asarray(3 * products.sum(axis=1) / (n * (n + 1)))

    def estimate(self, release: LatticeRelease) -> float:
        """Return rho.

        Parameters
        ----------
        release : LatticeRelease
            Of this query.

        Returns
        -------
        float
            From -1 to 1.
        """
        value, counts = self._read(release)
        return float(np.clip(value / (counts[0] - 1), -1, 1))


def _ranks(column: _Array, source: RandomSource) -> _Ranks:
    """Return ranks from 0, ties broken at random."""
    ranks = np.empty(column.size, np.int64)
    ranks[order_of(column, source)] = np.arange(column.size)
    return ranks


def _inversions(order: _Ranks) -> int:
    """Return how many pairs of a permutation of 0, 1, ... are in falling order.

    A pair is counted at the highest bit in which both differ: a stable partition by that bit, within the
    numbers that have the higher bits in common, counts the ones before each zero.
    """
    found, values = 0, order
    for bit in reversed(range(int(order.size - 1).bit_length())):
        ones = (values >> bit) & 1
        before = np.append(0, np.cumsum(ones))
        start = (values >> (bit + 1)) << (bit + 1)
        ahead = before[:-1] - before[start]
        found += int(ahead[ones == 0].sum())
        # The numbers from 0 on are all there, so each half starts at its own smallest number.
        offset = np.where(ones == 1, ahead, np.arange(values.size) - start - ahead)
        moved = np.empty_like(values)
        moved[((values >> bit) << bit) + offset] = values
        values = moved
    return found
