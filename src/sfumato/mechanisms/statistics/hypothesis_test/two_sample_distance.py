"""The two-sample Kolmogorov-Smirnov test: whether two groups have one distribution."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import kolmogi

from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.query.records import as_table
from sfumato.mechanisms.statistics.hypothesis_test.counted_statistic import (
    CountedStatistic,
    order_of,
    real_numbers,
)
from sfumato.mechanisms.statistics.hypothesis_test.null_draws import rank_among
from sfumato.mechanisms.statistics.hypothesis_test.p_value import HypothesisTestResult

__all__ = ["TwoSampleKolmogorovSmirnov"]

_DRAWS: Final = 999
_FEW: Final = 512
_SQUARE: Final = np.pi**2 / 12
"""The mean square of Kolmogorov's distribution."""
_Array = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSampleKolmogorovSmirnov(CountedStatistic):
    r"""The greatest distance of two groups' distribution functions; both sizes are private.

    Notes
    -----
    A record is a group (0 for the first one, any other number for the second) and a number. With n and m
    records in the groups, and D the greatest distance of their empirical distribution functions, released are
    :math:`S = D\,nm/(n+m)`, n and m, with one noise.

    Guarantee: S is the maximum over t of :math:`|A(t)|`, where :math:`A = C_1 - Cn/(n+m)`, and
    :math:`C_1(t)` of the first group's and C(t) of all records are up to t. A record x that is added to the
    first group moves A(t) by :math:`-Cm/((n+m)(n+m+1))` below x, and by :math:`(1 - C/(n+m))\,m/(n+m+1)`
    from x on: by at most :math:`m/(n+m+1) < 1`; and by symmetry, as S does not depend on the order of the
    groups, one that is added to the second by at most :math:`n/(n+m+1)`. A record that is replaced within
    its group moves A by at most :math:`m/(n+m)` or :math:`n/(n+m)`; one that leaves the first group for the
    second moves it by at most :math:`m/(n+m)`, and then :math:`(n-1)/(n+m)`: less than 1 in all. Each size
    has a quarter of the weight. Equal numbers are ordered at random, by keys that do not depend on them: the
    bound holds for all keys. NaN counts as 0.

    References
    ----------
    Awan, Wang, "Differentially private Kolmogorov-Smirnov-type tests" (2022): D for public sizes and a
    replaced record, of sensitivity 1 over the smaller size.

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

    @property
    def _groups(self) -> int:
        return 2

    @property
    def _moves(self) -> tuple[int | Fraction, int | Fraction]:
        return 1, 1

    def _statistic(self, data: Any) -> tuple[Fraction, tuple[int, ...]]:
        table = real_numbers(as_table(data, 2))
        inside = (table[order_of(table[:, 1]), 0] == 0).astype(np.int64)
        size, first = len(table), int(inside.sum())
        away = np.cumsum(inside) * size - np.arange(1, size + 1) * first
        most = int(np.abs(away).max(initial=0))
        return Fraction(most, max(1, size)), (first, size - first)

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
            Its statistic is the noisy S over its standard error, of sampling and noise; its p-value is the
            rank among drawn ones.

        Notes
        -----
        Where both groups have one distribution all orders of the records are equally likely, whatever it is.
        Both sizes are not known: see `WilcoxonSignedRank.test`. Beyond 512 records S is drawn by its limit,
        with the correction of Hodges for the steps of the distribution functions.

        References
        ----------
        Hodges, "The significance probability of the Smirnov two-sample test" (Arkiv for Matematik 1958).
        """
        value, drawn = self._null(release, draws, rng)
        return HypothesisTestResult(value, rank_among(value, drawn))


def _limit(counts: _Array, generator: np.random.Generator) -> _Array:
    """Draw S for so many records by Kolmogorov's distribution, moved as Hodges found."""
    largest, smallest = counts.max(axis=1), counts.min(axis=1)
    scale = np.sqrt(largest * smallest / (largest + smallest))
    correction = (largest + 2 * smallest) / (3 * scale * (largest + smallest))
    found = kolmogi(1 - generator.random(len(counts)))
    return np.asarray(scale * np.maximum(0.0, found - correction / 2))
