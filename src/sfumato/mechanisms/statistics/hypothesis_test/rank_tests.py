"""Rank tests: Mann and Whitney's for two groups, Kruskal and Wallis's with absolute ranks for several."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.mechanisms.statistics.hypothesis_test.counted_statistic import order_of
from sfumato.mechanisms.statistics.hypothesis_test.groups import (
    as_sizes,
    check_fixed_groups,
    checked_release,
    real_column,
)
from sfumato.mechanisms.statistics.hypothesis_test.p_value import HypothesisTestResult
from sfumato.mechanisms.statistics.null_draws import (
    Alternative,
    as_side,
    null_draws,
    rank_among,
    rank_on_side,
)
from sfumato.numerics.randomness.source import RandomSource, random_source
from sfumato.privacy.neighboring import Neighboring

__all__ = ["KruskalWallis", "MannWhitney"]

_DRAWS: Final = 999
_AT_ONCE: Final = 1 << 22
_Steps = NDArray[np.int64]


class _Ranks(Query):
    """A whole number that follows from the ranks of records in groups of public sizes."""

    __slots__ = ()

    sizes: tuple[int, ...]

    @property
    def step(self) -> int:
        """Answers are whole numbers."""
        return 1

    @property
    def entries(self) -> int:
        """One number."""
        return 1

    @property
    def draws(self) -> bool:
        """Whether two answers may differ: ties are broken at random."""
        return True

    @abstractmethod
    def _statistic(self, sums: _Steps) -> Any:
        """Return the statistic of centred rank sums, one for each group, along the last axis."""

    @abstractmethod
    def _largest_move(self) -> int:
        """Return by how much one replaced record moves it at most."""

    def steps(self, data: Any) -> int:
        """Return the statistic.

        Parameters
        ----------
        data : array of shape (n,)
            The records of the first group, then those of the next: whose turn it is follows from the sizes.

        Returns
        -------
        int
            Private.
        """
        return self.drawn_steps(data, random_source(None))

    def drawn_steps(self, data: Any, source: RandomSource) -> int:
        """Return the statistic, with ties broken by a source.

        Parameters
        ----------
        data : array of shape (n,)
            As for `steps`.
        source : RandomSource

        Returns
        -------
        int
            Private.
        """
        column = real_column(data, sum(self.sizes))
        ranks = np.empty(column.size, np.int64)
        ranks[order_of(column, source)] = np.arange(1, column.size + 1)
        return int(self._statistic(self._sums(ranks)))

    def shift(self, neighboring: Neighboring) -> Shift:
        """Return the bound for a record that is replaced by one of its group.

        Parameters
        ----------
        neighboring : Neighboring
            Who may change, and how.

        Returns
        -------
        Shift
            In every norm.
        """
        check_fixed_groups(neighboring)
        return Shift.entries(1, self._largest_move())

    def _sums(self, ranks: _Steps) -> _Steps:
        """Return the sums of ``2 rank - (n + 1)`` of each group: of +1 or -1 for each pair that is split."""
        starts = np.cumsum((0, *self.sizes[:-1]))
        return np.asarray(np.add.reduceat(2 * ranks - (sum(self.sizes) + 1), starts, axis=-1))

    def _drawn(
        self, release: LatticeRelease, draws: int, rng: int | np.random.Generator | None
    ) -> NDArray[np.float64]:
        """Return noisy statistics where all orders of the records are equally likely."""
        number, generator = null_draws(draws, rng)
        total = sum(self.sizes)
        block = max(1, _AT_ONCE // total)
        found = []
        for start in range(0, number, block):
            count = min(block, number - start)
            ranks = generator.permuted(np.tile(np.arange(1, total + 1), (count, 1)), axis=1)
            found.append(self._statistic(self._sums(ranks)))
        noise = np.asarray(release.distribution.sample(number, generator))
        return np.asarray(np.concatenate(found) + noise, dtype=np.float64)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MannWhitney(_Ranks):
    r"""Mann and Whitney's U (Wilcoxon's rank sum): in how many pairs the record of the first group is larger.

    Parameters
    ----------
    sizes : tuple of two ints
        How many records either group has, public, at most 2**20 in all. The data has the first group's
        records first. Of more records than that the first ones count; what is missing, and NaN, count as 0.

    Notes
    -----
    Guarantee: a replaced record of the first group takes part in as many pairs as the second has records, and
    the other way round, so that U moves by at most the larger size. Equal records are ordered at random, by
    keys that do not depend on them: the bound holds for each order of the keys. Group sizes are public, so
    that a record is replaced within its group; under other relations it is refused.

    References
    ----------
    Couch, Kazan, Shi, Bray, Groce, "Differentially private nonparametric hypothesis testing" (CCS 2019), with
    private sizes.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> query = MannWhitney(sizes=(80, 120))
    >>> noisy = Laplace.for_query(query, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE)
    >>> rng = np.random.default_rng(0)
    >>> same, moved = rng.normal(size=200), rng.normal(size=200) + np.repeat([1, 0], [80, 120])
    >>> query.test(noisy.release(same, rng=1), rng=2).p_value > 0.05
    True
    >>> query.test(noisy.release(moved, rng=1), rng=2).p_value
    0.001
    """

    sizes: tuple[int, int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", as_sizes(self.sizes, exactly=2))

    def _largest_move(self) -> int:
        return max(self.sizes)

    def _statistic(self, sums: _Steps) -> Any:
        return (sums[..., 0] + self.sizes[0] * self.sizes[1]) // 2

    def test(
        self,
        release: LatticeRelease,
        *,
        alternative: Alternative = "two-sided",
        draws: int = _DRAWS,
        rng: int | np.random.Generator | None = None,
    ) -> HypothesisTestResult:
        """Return the p-value of a release: post-processing, free of charge.

        Parameters
        ----------
        release : LatticeRelease
            Of this query, under replace-one.
        alternative : {"greater", "less", "two-sided"}
            Whether the first group's records tend to be larger, or smaller, than the second's.
        draws : int
            How many orders of the records are drawn under the null hypothesis; at least 19.
        rng : None, int or numpy Generator
            For these draws; they need no secrecy.

        Returns
        -------
        HypothesisTestResult
            Its statistic is the noisy U; its p-value is the rank among drawn ones with noise, and valid for
            any number of records and of draws, of whatever distribution both groups have in common.
        """
        given = checked_release(self, release)
        side = as_side(alternative)
        middle = self.sizes[0] * self.sizes[1] / 2
        drawn, value = self._drawn(given, draws, rng) - middle, float(given.value) - middle
        return HypothesisTestResult(float(given.value), rank_on_side(value, drawn, side))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KruskalWallis(_Ranks):
    r"""Kruskal and Wallis's test with absolute values: how far groups' mean ranks are from the middle.

    Parameters
    ----------
    sizes : tuple of ints
        As in `MannWhitney`, for two groups or more.

    Notes
    -----
    With :math:`\bar r_i` the mean rank of group i the released number is :math:`\sum_i 2n_i |\bar r_i -
    (n + 1)/2|`, a whole number; squares in its place, as in the classical test, would move much further.

    Guarantee: the sum over a group of twice the rank, centred, is the sum of 1 or -1 for each pair of one of
    its records with one of another group. A replaced record of group g changes c such signs, at most
    :math:`n - n_g`; its own group's sum moves by 2c, and those of the others by 2c together. So the number
    moves by at most :math:`4 (n - \min_i n_i)`. Ties and relations are as in `MannWhitney`.

    References
    ----------
    Couch, Kazan, Shi, Bray, Groce, "Differentially private nonparametric hypothesis testing" (CCS 2019); the
    statistic there is :math:`2(n-1)/n^2` times the released number, of sensitivity 8 for private sizes.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> query = KruskalWallis(sizes=(100, 100, 100))
    >>> noisy = Laplace.for_query(query, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE)
    >>> rng = np.random.default_rng(0)
    >>> same, moved = rng.normal(size=300), rng.normal(size=300) + np.repeat([0, 0, 1], 100)
    >>> query.test(noisy.release(same, rng=1), rng=2).p_value > 0.05
    True
    >>> query.test(noisy.release(moved, rng=1), rng=2).p_value
    0.001
    """

    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", as_sizes(self.sizes))

    def _largest_move(self) -> int:
        return 4 * (sum(self.sizes) - min(self.sizes))

    def _statistic(self, sums: _Steps) -> Any:
        return np.abs(sums).sum(axis=-1)

    def test(
        self, release: LatticeRelease, *, draws: int = _DRAWS, rng: int | np.random.Generator | None = None
    ) -> HypothesisTestResult:
        """Return the p-value of a release: post-processing, free of charge.

        Parameters
        ----------
        release : LatticeRelease
            Of this query, under replace-one.
        draws : int
            As in `MannWhitney.test`.
        rng : None, int or numpy Generator
            For these draws; they need no secrecy.

        Returns
        -------
        HypothesisTestResult
            Its statistic is that of Couch et al., noisy; its p-value is the rank among drawn ones with noise,
            and valid as that of `MannWhitney.test`.
        """
        given, total = checked_release(self, release), sum(self.sizes)
        p_value = rank_among(float(given.value), self._drawn(given, draws, rng))
        return HypothesisTestResult(2 * (total - 1) / total**2 * float(given.value), p_value)
