"""The two-sample Kolmogorov-Smirnov test: whether two groups have one distribution."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import kolmogi

from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.mechanisms.query.records import as_table
from sfumato.mechanisms.statistics.hypothesis_test.counted_statistic import (
    STEP,
    CountedStatistic,
    order_of,
    real_numbers,
)
from sfumato.mechanisms.statistics.hypothesis_test.groups import (
    as_sizes,
    check_fixed_groups,
    checked_release,
    real_column,
)
from sfumato.mechanisms.statistics.hypothesis_test.p_value import HypothesisTestResult
from sfumato.mechanisms.statistics.null_draws import drawn_noise, null_draws, rank_among
from sfumato.numerics.randomness.source import RandomSource
from sfumato.privacy.neighboring import Neighboring

__all__ = ["TwoSampleKolmogorovSmirnov"]

_DRAWS: Final = 999
_FEW: Final = 512
_AT_ONCE: Final = 1 << 22
_SQUARE: Final = np.pi**2 / 12
"""The mean square of Kolmogorov's distribution."""
_Array = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSampleKolmogorovSmirnov(CountedStatistic):
    r"""The greatest distance of two groups' distribution functions, whose sizes are private or public.

    Parameters
    ----------
    sizes : tuple of two ints, optional
        How many records either group has, where that is public, at most 2**20 in all. The data then has the
        first group's records first, a number for each, as in `MannWhitney`.

    Notes
    -----
    Without sizes a record is a group (0 for the first one, any other number for the second) and a number.
    With n and m records in the groups, and D the greatest distance of their empirical distribution functions,
    released are :math:`S = D\,nm/(n+m)`, n and m, with one noise.

    Guarantee: S is the maximum over t of :math:`|A(t)|`, where :math:`A = C_1 - Cn/(n+m)`, and
    :math:`C_1(t)` of the first group's and C(t) of all records are up to t. A record x that is added to the
    first group moves A(t) by :math:`-Cm/((n+m)(n+m+1))` below x, and by :math:`(1 - C/(n+m))\,m/(n+m+1)`
    from x on: by at most :math:`m/(n+m+1) < 1`; and by symmetry, as S does not depend on the order of the
    groups, one that is added to the second by at most :math:`n/(n+m+1)`. A record that is replaced within
    its group moves A by at most :math:`m/(n+m)` or :math:`n/(n+m)`; one that leaves the first group for the
    second moves it by at most :math:`m/(n+m)`, and then :math:`(n-1)/(n+m)`: less than 1 in all. Each size
    has a quarter of the weight. Equal numbers are ordered at random, by keys that do not depend on them: the
    bound holds for all keys. NaN counts as 0.

    With sizes the answer is the whole number nmD, and a record is replaced within its group, which moves one
    of the distribution functions by at most 1/n, or 1/m: so the answer moves by at most the larger size.

    References
    ----------
    Awan, Wang, "Differentially private Kolmogorov-Smirnov-type tests" (2022), with D for
    public sizes and a replaced record.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> noisy = Laplace.for_query(TwoSampleKolmogorovSmirnov(), epsilon=1.0)
    >>> rng, group = np.random.default_rng(0), np.repeat([0, 1], [200, 300])
    >>> same, wider = rng.normal(size=500), rng.normal(size=500) * np.where(group, 3, 1)
    >>> releases = [noisy.release(np.column_stack([group, x]), rng=1) for x in (same, wider)]
    >>> [noisy.query.test(release, rng=2).p_value < 0.01 for release in releases]
    [False, True]
    """

    sizes: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        given: object = self.sizes
        if given is not None:
            object.__setattr__(self, "sizes", as_sizes(given, exactly=2))

    @property
    def step(self) -> int | Fraction:
        """What one step is worth; 1 for public sizes."""
        return 1 if self.sizes else STEP

    @property
    def entries(self) -> int:
        """The statistic, and private sizes."""
        return 1 if self.sizes else 1 + self._groups

    @property
    def _groups(self) -> int:
        return 2

    def drawn_steps(self, data: Any, source: RandomSource) -> int | NDArray[np.int64]:
        """Return the statistic, with ties broken by a source, and private sizes with their weight.

        Parameters
        ----------
        data : array of shape (n + m, 2), or (n + m,) where sizes are public
            A group and a number for each record, or only the number.
        source : RandomSource

        Returns
        -------
        int, or array of int64 of shape (entries,)
            In steps of `step`; private.
        """
        if self.sizes is None:
            return CountedStatistic.drawn_steps(self, data, source)
        column = real_column(data, sum(self.sizes))
        return int(_largest_distance(order_of(column, source) < self.sizes[0]))

    def shift(self, neighboring: Neighboring) -> Shift:
        """Return the bound for a record that is added or removed (or zeroed), or replaced.

        Parameters
        ----------
        neighboring : Neighboring
            Who may change, and how; for public sizes a record that is replaced within its group.

        Returns
        -------
        Shift
            In steps of `step`, in every norm.
        """
        if self.sizes is None:
            return CountedStatistic.shift(self, neighboring)
        check_fixed_groups(neighboring)
        return Shift.entries(1, max(self.sizes))

    @property
    def _moves(self) -> tuple[int | Fraction, int | Fraction]:
        return 1, 1

    def _statistic(self, data: Any, source: RandomSource) -> tuple[Fraction, tuple[int, ...]]:
        table = real_numbers(as_table(data, 2))
        inside = table[order_of(table[:, 1], source), 0] == 0
        size, first = len(table), int(inside.sum())
        return Fraction(int(_largest_distance(inside)), max(1, size)), (first, size - first)

    def _variance(self, counts: _Array) -> _Array:
        return np.asarray(_SQUARE * counts.prod(axis=-1) / counts.sum(axis=-1))

    def _drawn(self, counts: NDArray[np.int64], generator: np.random.Generator) -> _Array:
        total, first = counts.sum(axis=1), counts[:, 0]
        if int(total.max()) > _FEW:
            return _limit(counts.astype(np.float64), generator)
        inside = np.arange(total.max()) < total[:, None]
        keys = np.where(inside, generator.random(inside.shape), 2.0)
        group = (np.argsort(keys, axis=1) < first[:, None]) & inside
        expected = np.arange(1, inside.shape[1] + 1) * (first / total)[:, None]
        away = np.abs(np.cumsum(group, axis=1) - expected)
        return np.asarray(np.where(inside, away, 0.0).max(axis=1))

    def estimate(self, release: LatticeRelease) -> float:
        """Return the greatest distance of both groups' distribution functions.

        Parameters
        ----------
        release : LatticeRelease
            Of this query.

        Returns
        -------
        float
            From 0 to 1.
        """
        if self.sizes is not None:
            return float(np.clip(self.check_release(release).value / np.prod(self.sizes), 0, 1))
        value, counts = self._read(release)
        return float(np.clip(value * counts.sum() / counts.prod(), 0, 1))

    def test(
        self, release: LatticeRelease, *, draws: int = _DRAWS, rng: int | np.random.Generator | None = None
    ) -> HypothesisTestResult:
        """Return the p-value of a release: post-processing, free of charge.

        Parameters
        ----------
        release : LatticeRelease
            Of this query.
        draws : int
            How many statistics are drawn under the null hypothesis; at least 19.
        rng : None, int or numpy Generator
            For these draws; they need no secrecy.

        Returns
        -------
        HypothesisTestResult
            Its statistic is the noisy S over its standard error, of sampling and noise, or for public sizes
            the noisy D; its p-value is the rank among drawn ones.

        Notes
        -----
        Where both groups have one distribution all orders of the records are equally likely, whatever it is:
        for public sizes the p-value is valid for any number of records and of draws. Private ones are not
        known: see `WilcoxonSignedRank.test`. Beyond 512 records S is drawn by its limit, with the correction
        of Hodges for the steps of the distribution functions.

        References
        ----------
        Hodges, "The significance probability of the Smirnov two-sample test" (Arkiv for Matematik 1958).
        """
        if self.sizes is not None:
            return self._exact_test(checked_release(self, release), self.sizes, draws, rng)
        value, drawn = self._null(release, None, draws, rng)
        return HypothesisTestResult(value, rank_among(value, drawn))

    def _exact_test(
        self,
        release: LatticeRelease,
        sizes: tuple[int, int],
        draws: int,
        rng: int | np.random.Generator | None,
    ) -> HypothesisTestResult:
        number, generator = null_draws(draws, rng)
        groups = np.arange(sum(sizes)) < sizes[0]
        block = max(1, _AT_ONCE // groups.size)
        found = [
            _largest_distance(generator.permuted(np.tile(groups, (min(block, number - start), 1)), axis=1))
            for start in range(0, number, block)
        ]
        drawn = np.concatenate(found) + drawn_noise(release, number, generator)
        value = float(release.value)
        return HypothesisTestResult(value / (sizes[0] * sizes[1]), rank_among(value, drawn))


def _largest_distance(first: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return nmD of records in order, along the last axis, of which these are in the first group."""
    inside = first.astype(np.int64)
    size, count = inside.shape[-1], inside.sum(axis=-1, keepdims=True)
    away = np.cumsum(inside, axis=-1) * size - np.arange(1, size + 1) * count
    return np.asarray(np.abs(away).max(axis=-1, initial=0))


def _limit(counts: _Array, generator: np.random.Generator) -> _Array:
    """Draw S for so many records by Kolmogorov's distribution, moved as Hodges found."""
    largest, smallest = counts.max(axis=1), counts.min(axis=1)
    scale = np.sqrt(largest * smallest / (largest + smallest))
    correction = (largest + 2 * smallest) / (3 * scale * (largest + smallest))
    found = kolmogi(1 - generator.random(len(counts)))
    return np.asarray(scale * np.maximum(0.0, found - correction / 2))
