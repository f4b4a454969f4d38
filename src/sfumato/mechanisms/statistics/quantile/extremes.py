"""The approximate minimum and maximum of a column."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, final

from sfumato import _check
from sfumato.mechanisms.base.rational import drawn_epsilon
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.statistics.quantile.quantiles import without_nan
from sfumato.mechanisms.statistics.quantile.rank_mechanism import MINIMUM_RATE, RankMechanism
from sfumato.mechanisms.statistics.quantile.rank_sampling import PartitionedNumbers, RankSampler
from sfumato.numerics.decimals import outward
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.leaves.exponential import Exponential
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["Extreme"]

_MAXIMUM: Final = 1 << 48


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Extreme(RankMechanism):
    """A value that only about so many records exceed, or fall below.

    No private answer can follow a single record; this one is an order statistic as near to the end as its
    budget allows.

    Parameters
    ----------
    side : {"max", "min"}
        Which end.
    bounds, epsilon, grid, neighboring
        As in `Quantile`; the finer the grid between the bounds, the larger the rank.
    rank : int, optional
        Of the order statistic that is asked for, from the end: 0 is the extreme value itself, k the value
        with k records beyond it. By default so large that an answer beyond all records has a probability of
        at most 1/20.

    Notes
    -----
    Guarantee: epsilon-DP, of bounded range, as `Quantile`; the score is minus the distance of a point's rank
    from ``rank``, counted from the end, which one record moves by at most 1 under any
    relation.

    Examples
    --------
    >>> import numpy as np
    >>> largest = Extreme(side="max", bounds=(0, 10_000), epsilon=1.0)
    >>> incomes = np.arange(5000)
    >>> largest.rank, largest.release(incomes, rng=1).value
    (25, 4975)
    """

    side: Literal["max", "min"] = "max"
    rank: int = None  # type: ignore[assignment]  # settled in _check_rates

    def _check_rates(self) -> None:
        if self.side not in ("max", "min"):
            _check.refuse("side", "be 'max' or 'min'", self.side, "pass side='max' for the largest")
        if self._rate < MINIMUM_RATE:
            remedy = "pass a larger one; such an answer carries no information"
            _check.refuse("epsilon", "be at least about 2**-35", self.epsilon, remedy)
        given: int | None = self.rank
        if given is None:
            lower, upper = self._ends()
            odds = math.log(20 * (upper - lower + 1))
            given = math.ceil(Fraction(odds) / self._rate)
        if _check.integer("rank", given) > _MAXIMUM:
            _check.refuse("rank", "be at most 2**48", given, "pass fewer; no data has so many records")
        object.__setattr__(self, "rank", int(given))

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        return Exponential(outward(drawn_epsilon(self.epsilon)), neighboring=self.neighboring)

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Release the extreme value of a column.

        Parameters
        ----------
        value : array, list or column of shape (n,)
            One real number per record; not changed.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of an int for int bounds, else of a float.
        """
        source = random_source(rng)
        return self._release_as(Release, self.outputs(value, 1, source)[0], source)

    def outputs(self, value: Any, size: int, rng: Rng = None) -> Any:
        """Draw many answers at once; see `Mechanism.outputs`.

        Parameters
        ----------
        value
            As in `release`; private.
        size : int
            How many independent releases are drawn.
        rng : int, numpy Generator or None
            None for the operating system's randomness; a seed is for simulation only.

        Returns
        -------
        array of shape (size,)
        """
        size = _check.integer("size", size, minimum=1)
        lower, upper = self._ends()
        top = self.side == "max"
        draw = RankSampler(Fraction(int(top)), self._rate, lower, upper, -self.rank if top else self.rank)
        ranks = PartitionedNumbers(without_nan(value), self.grid, lower, upper)
        return [self._value(point) for point in draw.draws(ranks, size, random_source(rng)).tolist()]

    @property
    def _rate(self) -> Fraction:
        return drawn_epsilon(self.epsilon) / 2
