"""The base class of rank statistics that are released with the number of records, which stays private."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.base.sensitivity import Shift
from sfumato.mechanisms.statistics.hypothesis_test.p_value import HypothesisTestResult, size_of_release
from sfumato.mechanisms.statistics.null_draws import (
    Alternative,
    as_side,
    drawn_noise,
    null_draws,
    rank_on_side,
)
from sfumato.numerics.randomness.source import RandomSource, random_source
from sfumato.privacy.neighboring import Neighboring

__all__ = ["STEP", "CountedStatistic", "order_of", "real_numbers"]

_ONE: Final = 1 << 20
STEP: Final = Fraction(1, _ONE)
_SHARE: Final = Fraction(1, 8)
"""The weight of a count: of by how much one record that is added moves the statistic; of two counts twice."""
_MOST: Final = 1 << 40
Array = NDArray[np.float64]


class CountedStatistic(Query):
    """A statistic of ranks over about the number of records, so that one record moves it by a constant.

    The answer is the statistic, which is rounded down to 20 bits, and the number of records in each group
    times a weight: an eighth of by how much one record moves the statistic, a quarter for two groups. What a
    subclass states as its largest move is a bound that is never reached, so that a statistic in steps,
    rounded down, moves by no more than as many whole steps.
    """

    __slots__ = ()

    @property
    def step(self) -> int | Fraction:
        """What one step is worth."""
        return STEP

    @property
    def entries(self) -> int:
        """The statistic, and the size of each group."""
        return 1 + self._groups

    @property
    def draws(self) -> bool:
        """Whether two answers may differ: ties are broken at random."""
        return True

    @property
    def _groups(self) -> int:
        return 1

    @property
    @abstractmethod
    def _moves(self) -> tuple[int | Fraction, int | Fraction]:
        """By how much less a record moves the statistic that is added, and one that is replaced."""

    @abstractmethod
    def _statistic(self, data: Any, source: RandomSource) -> tuple[Fraction, tuple[int, ...]]:
        """Return the statistic, with ties broken by a source, and the numbers of records."""

    @abstractmethod
    def _variance(self, counts: Array) -> Array:
        """Return its variance under the null hypothesis, for numbers of records along the last axis."""

    @abstractmethod
    def _drawn(self, counts: NDArray[np.int64], generator: np.random.Generator) -> Array:
        """Return statistics under the null hypothesis, one for each row of numbers of records."""

    @property
    def _weight(self) -> Fraction:
        return Fraction(self._moves[0]) * _SHARE * self._groups

    def steps(self, data: Any) -> int | NDArray[np.int64]:
        """Return the statistic and the weighted numbers of records, in steps.

        Parameters
        ----------
        data : array
            A record in each row.

        Returns
        -------
        array of int64, shape (entries,)
            In steps of `step`; private.
        """
        return self.drawn_steps(data, random_source(None))

    def drawn_steps(self, data: Any, source: RandomSource) -> int | NDArray[np.int64]:
        """Return the statistic, with ties broken by a source, and the weighted numbers of records.

        Parameters
        ----------
        data : array
            A record in each row.
        source : RandomSource

        Returns
        -------
        array of int64, shape (entries,)
            In steps of `step`; private.
        """
        value, counts = self._statistic(data, source)
        weight = int(self._weight * _ONE)
        return np.array([(value * _ONE).__floor__(), *(weight * count for count in counts)], np.int64)

    def shift(self, neighboring: Neighboring) -> Shift:
        """Return the bound for a record that is added or removed (or zeroed), or replaced.

        Parameters
        ----------
        neighboring : Neighboring
            Who may change, and how.

        Returns
        -------
        Shift
            In steps of `step`, in every norm.
        """
        replaced = neighboring is Neighboring.REPLACE_ONE
        first = int(self._moves[replaced] * _ONE)
        weight = int(self._weight * _ONE)
        # A replaced record may leave one group for another; of one group the number stays.
        moved = (self._groups if self._groups > 1 else 0) if replaced else 1
        return Shift(
            l0=1 + moved,
            l1=first + moved * weight,
            l2_squared=first**2 + moved * weight**2,
            linf=max(first, weight),
        )

    def _tested(
        self,
        release: LatticeRelease,
        *,
        n: int | None,
        alternative: Alternative,
        draws: int,
        rng: int | np.random.Generator | None,
    ) -> HypothesisTestResult:
        """Return the standardized statistic and its rank among drawn ones, on one side or on either."""
        side = as_side(alternative)
        value, drawn = self._null(release, n, draws, rng)
        return HypothesisTestResult(value, rank_on_side(value, drawn, side))

    def _normal(self, counts: NDArray[np.int64], generator: np.random.Generator) -> Array:
        """Return statistics of many records, by their normal limit."""
        deviation = np.sqrt(self._variance(counts.astype(np.float64)))
        return np.asarray(generator.standard_normal(len(counts)) * deviation)

    def _read(self, release: LatticeRelease) -> tuple[float, Array]:
        """Return the noisy statistic, and numbers of records: two at least."""
        values = np.asarray(self.check_release(release).value, dtype=np.float64)
        return float(values[0]), self._counts(values[1:])

    def _counts(self, weighted: Array) -> Array:
        return np.asarray(np.clip(weighted / float(self._weight), 2.0, _MOST))

    def _null(
        self, release: LatticeRelease, n: int | None, draws: int, rng: int | np.random.Generator | None
    ) -> tuple[float, Array]:
        """Return the standardized statistic, and drawn ones.

        Unless the number of records is public, each is drawn for one of its own: the noisy one with fresh
        noise.
        """
        number, generator = null_draws(draws, rng)
        value, seen = self._read(release)
        if n is not None:
            size = np.full((number, 1), size_of_release(release, n, "leave n out"))
            known = self._drawn(size, generator) + drawn_noise(release, number, generator)
            error = np.sqrt(self._variance(size[:1].astype(np.float64)) + release.stddev**2)
            return value / float(error[0]), known / error
        weight, variance = float(self._weight), release.stddev**2
        noise = drawn_noise(release, (2, number, self.entries), generator)
        counts = np.rint(self._counts(seen * weight + noise[0, :, 1:]))
        drawn = self._drawn(counts.astype(np.int64), generator) + noise[1, :, 0]
        again = self._counts(counts * weight + noise[1, :, 1:])
        scale = np.sqrt(self._variance(np.vstack([seen[None], again])) + variance)
        return value / float(scale[0]), drawn / scale[1:]


def real_numbers(column: NDArray[Any]) -> Array:
    """Return real numbers, 0 for NaN."""
    return np.nan_to_num(column.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)


def order_of(column: Array, source: RandomSource) -> NDArray[np.int64]:
    """Return the order of records, each order of equal ones being as likely as any other."""
    return np.lexsort((source.words(column.size), column))
