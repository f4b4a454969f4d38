"""The Kolmogorov-Smirnov test: whether records follow a given continuous distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import smirnov

from sfumato import _check
from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.base.sensitivity import Shift, check_public_size
from sfumato.mechanisms.query.records import as_numbers
from sfumato.mechanisms.statistics.hypothesis_test.p_value import (
    HypothesisTestResult,
    noisy_tail_probability,
    public_size,
    size_of_release,
)
from sfumato.privacy.neighboring import Neighboring

__all__ = ["KolmogorovSmirnov"]

_BITS: Final = 24
_ONE: Final = 1 << _BITS
_EXACT: Final = 2000
_MARK: Final = 1 / 256
"""Distance of two marks, times the root of n."""
_MARKS: Final = 1024


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KolmogorovSmirnov(Query):
    r"""The greatest distance of the data's distribution function from a given one, times n.

    Parameters
    ----------
    cdf : callable
        The distribution function of the null hypothesis, continuous: an array to an array of probabilities,
        each of which follows from its own record alone (no mean of the data in it), and that never fails.
    n : int
        How many records there are, public. Of more only the first n count; what is missing counts as
        probability 1.

    Notes
    -----
    Each record's probability is rounded to 24 bits by itself. Replacing one record moves the data's
    distribution function by at most 1/n everywhere, so the statistic :math:`nD_n` moves by at most 1. With
    public n nobody is added or removed: under add/remove it is refused.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import Laplace
    >>> from sfumato.privacy import Neighboring
    >>> query = KolmogorovSmirnov(cdf=lambda x: np.clip(x, 0, 1), n=1000)
    >>> noisy = Laplace.for_query(query, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE)
    >>> uniform = np.random.default_rng(0).random(1000)
    >>> query.test(noisy.release(uniform, rng=1)).p_value > 0.05
    True
    >>> query.test(noisy.release(uniform**2, rng=1)).p_value < 1e-6
    True
    """

    cdf: Callable[[Any], Any]
    n: int

    def __post_init__(self) -> None:
        if not callable(self.cdf):
            _check.refuse("cdf", "be callable", self.cdf, "pass a distribution function")
        public_size(self.n)

    @property
    def step(self) -> Fraction:
        """What one step is worth."""
        return Fraction(1, _ONE)

    @property
    def entries(self) -> int:
        """One number."""
        return 1

    def steps(self, data: Any) -> int:
        """Return the statistic in steps.

        Parameters
        ----------
        data : array of shape (n,)
            A number for each record.

        Returns
        -------
        int
            In steps of `step`; private.
        """
        array = as_numbers(data, integral=False)[: self.n]
        with np.errstate(all="ignore"):
            chances = np.asarray(self.cdf(np.nan_to_num(array.astype(np.float64), nan=0.0)), dtype=np.float64)
        if chances.shape != array.shape:
            rule = "return one probability for each record: an array with one axis"
            remedy = "make it take and return arrays"
            _check.refuse_state("cdf", rule, f"it returned {chances.ndim} axes", remedy)
        share = np.clip(np.nan_to_num(chances, nan=0.0), 0, 1)
        positions = np.append(np.rint(share * _ONE), np.full(self.n - len(array), float(_ONE))).astype(
            np.int64
        )
        positions.sort()
        ranks = np.arange(1, self.n + 1) * _ONE
        return int(max(np.max(ranks - self.n * positions), np.max(self.n * positions - (ranks - _ONE))))

    def shift(self, neighboring: Neighboring) -> Shift:
        """Return the bound for a replaced record.

        Parameters
        ----------
        neighboring : Neighboring
            Who may change, and how.

        Returns
        -------
        Shift
            In steps of `step`, in every norm.
        """
        check_public_size(neighboring)
        return Shift.entries(1, _ONE)

    def test(self, release: LatticeRelease) -> HypothesisTestResult:
        """Return the p-value of a release: post-processing, free of charge.

        Parameters
        ----------
        release : LatticeRelease
            Of this query.

        Returns
        -------
        HypothesisTestResult
            Its statistic is the noisy distance.

        Notes
        -----
        The tail of both sides is bounded by twice that of Smirnov's one-sided statistic (their union), of
        which usual levels see nothing; beyond 2,000 records by Massart's :math:`2e^{-2nd^2}`. The rounding of
        a record moves the distance by at most :math:`2^{-25}`, and is given away.

        References
        ----------
        Massart, "The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality" (Annals of Probability
        1990).
        """
        slack = self.n  # half a step of every record's probability, times n, in steps; twice to be safe

        def tail(x: Any) -> Any:
            steps = np.asarray(x, dtype=np.float64) - slack
            distance = np.clip(steps / (self.n * float(_ONE)), 0, 1)
            return np.where(steps > self.n * _ONE, 0.0, _distance_tail(self.n, distance))

        release = self.check_release(release)
        size_of_release(release, self.n)
        bounds = noisy_tail_probability(tail, release.distribution, int(release.steps))
        return HypothesisTestResult(float(release.value) / self.n, bounds.upper)


def _distance_tail(n: int, distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bound the probability of at least such distances from above."""
    maximum = np.minimum(1.0, 2 * np.exp(-2 * n * distance**2))
    if n > _EXACT:
        return np.asarray(maximum)
    # The tail falls: it is at most what it is at the next mark below.
    mark = np.minimum(distance * math.sqrt(n) / _MARK, _MARKS - 1).astype(np.int64)
    return np.asarray(np.minimum(maximum, _marks(n)[mark]))


@lru_cache(maxsize=16)
def _marks(n: int) -> NDArray[np.float64]:
    at = np.minimum(np.arange(_MARKS) * _MARK / math.sqrt(n), 1.0)
    return np.asarray(2 * smirnov(n, at) * (1 + 1e-9))
