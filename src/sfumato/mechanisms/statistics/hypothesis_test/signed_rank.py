"""Wilcoxon's signed-rank test: whether differences of pairs lie symmetrically around zero."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.query.records import as_numbers
from sfumato.mechanisms.statistics.hypothesis_test.counted_statistic import (
    CountedStatistic,
    order_of,
    real_numbers,
)
from sfumato.mechanisms.statistics.hypothesis_test.p_value import HypothesisTestResult
from sfumato.mechanisms.statistics.null_draws import Alternative
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["WilcoxonSignedRank"]

_DRAWS: Final = 999
_FEW: Final = 512
_Array = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WilcoxonSignedRank(CountedStatistic):
    r"""Wilcoxon's signed-rank statistic of one difference per record, over the number of records.

    Notes
    -----
    With ranks of the differences' magnitudes from 1 to n, W is the sum of the ranks of positive differences
    less that of negative ones. Released are :math:`W/(n+1)` and n, with one noise: the number of records is
    private.

    Guarantee: W is a sum over all pairs of records, and each record with itself, of the sign of the one that
    is larger in magnitude. A record that is added adds :math:`n + 1` such signs, d in all. So
    :math:`W/(n+1)` moves by :math:`|d(n+1) - W|/((n+1)(n+2))`, and as :math:`|W| \le n(n+1)/2` by less than
    3/2. A record that is replaced changes n signs, and moves it by at most :math:`2n/(n+1) < 2`, and n not
    at all. The number of records has an eighth of the weight. Equal magnitudes are ordered, and zeros
    signed, at random, by keys that do not depend on them: the bound holds for all keys. NaN counts as 0.

    References
    ----------
    Couch, Kazan, Shi, Bray, Groce, "Differentially private nonparametric hypothesis testing" (CCS 2019): W
    with sensitivity 2n, for a replaced record and a public n. Under replace-one the noise is the same here.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> noisy = Laplace.for_query(WilcoxonSignedRank(), epsilon=1.0)
    >>> rng = np.random.default_rng(0)
    >>> before = rng.normal(120, 15, 400)
    >>> same, lower = before + rng.normal(0, 5, 400), before + rng.normal(-2, 5, 400)
    >>> query = noisy.query
    >>> query.test(noisy.release(same - before, rng=1), rng=2).p_value > 0.05
    True
    >>> query.test(noisy.release(lower - before, rng=1), rng=2).p_value
    0.001
    """

    @property
    def _moves(self) -> tuple[int | Fraction, int | Fraction]:
        return Fraction(3, 2), 2

    def _statistic(self, data: Any, source: RandomSource) -> tuple[Fraction, tuple[int, ...]]:
        column = real_numbers(as_numbers(data, integral=False))
        size = column.size
        lots = np.where(source.words(size) & np.uint64(1), 1, -1)
        signs = np.where(column == 0, lots, np.sign(column)).astype(np.int64)
        total = int((signs[order_of(np.abs(column), source)] * np.arange(1, size + 1)).sum())
        return Fraction(total, size + 1), (size,)

    def _variance(self, counts: _Array) -> _Array:
        n = counts[:, 0]
        return np.asarray(n * (2 * n + 1) / (6 * (n + 1)))

    def _drawn(self, counts: NDArray[np.int64], generator: np.random.Generator) -> _Array:
        n = counts[:, 0]
        most = int(n.max())
        if most > _FEW:
            return self._normal(counts, generator)
        ranks = np.arange(1, most + 1)
        signs = generator.integers(0, 2, (n.size, most), dtype=np.int8) * 2 - 1
        return np.asarray((signs * np.where(ranks <= n[:, None], ranks, 0)).sum(axis=1) / (n + 1))

    def estimate(self, release: LatticeRelease) -> float:
        """Return the rank-biserial correlation: W by the most that it can be, from -1 to 1.

        Parameters
        ----------
        release : LatticeRelease
            Of this query.

        Returns
        -------
        float
        """
        value, counts = self._read(release)
        return float(np.clip(2 * value / counts[0], -1, 1))

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
            Whether the differences tend to be above or below zero.
        draws : int
            How many statistics are drawn under the null hypothesis; at least 19.
        rng : None, int or numpy Generator
            For these draws; they need no secrecy.

        Returns
        -------
        HypothesisTestResult
            Its statistic is W in standard errors, of sampling and noise; its p-value is the rank among drawn
            ones.

        Raises
        ------
        NeighboringMismatch
            If n is given and the release is under add/remove.

        Notes
        -----
        Of n records with differences symmetric around zero W has a known distribution, whatever theirs: for a
        public n the p-value is valid for any number of records and of draws. A private n is not known: each
        draw has its own, the noisy one with fresh noise, and is standardized by a noisy one, so that the size
        is right in the limit of many records. Beyond 512 records W is drawn by its normal limit.
        """
        return self._tested(release, n=n, alternative=alternative, draws=draws, rng=rng)
