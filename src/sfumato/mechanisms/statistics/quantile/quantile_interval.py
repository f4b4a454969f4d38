"""A confidence interval for a quantile of a population, without a tree of counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrik, betainc

from sfumato import _check
from sfumato.mechanisms.base.grid import Grid
from sfumato.mechanisms.base.rational import Number, ceil_log2
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.mechanisms.query.sums import distinct_bounds
from sfumato.mechanisms.statistics.quantile.quantiles import Quantile, without_nan
from sfumato.mechanisms.statistics.quantile.rank_mechanism import RankMechanism
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["QuantileInterval"]

_BITS: Final = 16
_COUNT: Final = Fraction(1, 10)
"""The share of epsilon that the number of records gets; the rest is halved."""
_ALL: Final = 1 - Fraction(1, 1 << 40)
"""The share of epsilon that is spent: what losses are rounded up by comes to less than the rest."""
_RARE: Final = 1 / 40
"""The share of the error that each of four rare events gets: either end's choice, too few or many records."""
_MOST: Final = 1 << 20
_SLACK: Final = 1 + 1e-9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileInterval(RankMechanism):
    r"""An interval that holds a quantile of the population with at least the level, whatever the population.

    Parameters
    ----------
    quantile : int, float or Fraction
        As in `Quantile`.
    bounds : tuple of two numbers
        Public bounds of the answer; records, and the population, are clamped to them.
    epsilon : int, float or Fraction
        Of the whole answer: a tenth for the number of records, the rest halved for both ends.
    grid : Grid, optional
        What records are rounded to. Unless given, the finest with at most 2**16 points between the bounds,
        and of steps of at least 1 for int bounds; the coarser, the narrower the interval may be.
    neighboring : Neighboring
    level : float
        The coverage, strictly between 0 and 1.

    Notes
    -----
    *Guarantee.* A noisy number of records, then two answers of `Quantile` on the data with publicly many
    records added at either bound: adaptive composition.

    *Coverage.* Records are independent draws from the population. Let p be the quantile, t the bound of
    `Quantile.rank_bound` at a fortieth of the error, and n the number of records; the noisy one says between
    which two numbers n is, but for a twentieth of the error. Let s be such that :math:`P(B \le pn - s)` is at
    most 0.45 times the error for all those n, with :math:`B \sim Bin(n, p)`. With :math:`K \ge (t + s)/(1 -
    p)` records added at the lower bound the p-quantile's rank is :math:`p(n + K)`, so that at most
    :math:`pn - (1 - p)K + t \le pn - s` true records are below the lower end. Were it above the population's
    quantile, the records up to that quantile would be among them, and these are at least as many as B. The
    upper end is the same from above. Ends are moved out by half a step of the grid, to which records were
    rounded.

    A public n would spare a tenth of epsilon and a twentieth of the error. `Quantile` alone has no interval;
    that of `QuantileTree` is for the records, not for the population.

    References
    ----------
    Drechsler, Globus-Harris, McMillan, Sarathy, Smith, "Nonparametric differentially private confidence
    intervals for the median" (Journal of Survey Statistics and Methodology 2022), with the exponential
    mechanism, for a public n.

    Examples
    --------
    >>> incomes = np.random.default_rng(0).lognormal(10.5, 0.6, 5000)
    >>> median = QuantileInterval(quantile=0.5, bounds=(0.0, 200_000.0), epsilon=1.0)
    >>> lower, upper = median.release(incomes, rng=1).value
    >>> bool(lower < np.exp(10.5) < upper), float(upper / lower) < 1.15
    (True, True)
    """

    quantile: Number = Fraction(1, 2)
    level: float = 0.95

    def __post_init__(self) -> None:
        lower, upper = distinct_bounds(self.bounds)
        given: Grid | None = self.grid
        if given is None:
            whole = isinstance(lower, int) and isinstance(upper, int)
            exponent = ceil_log2((Fraction(upper) - Fraction(lower)) / ((1 << _BITS) - 1))
            object.__setattr__(self, "grid", Grid(exponent=max(0, exponent) if whole else exponent))
        object.__setattr__(self, "level", _check.unit_interval("level", self.level))
        RankMechanism.__post_init__(self)

    def _check_rates(self) -> None:
        share = Fraction(self._end.quantile)
        object.__setattr__(self, "quantile", share)
        if self._end.rank_bound((1 - self.level) * _RARE) > _MOST * min(share, 1 - share):
            rule = "be so large that less than 2**20 records hide either end"
            _check.refuse("epsilon", rule, self.epsilon, "pass a larger one, or a quantile nearer to 0.5")

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        return self._count.privacy_loss + self._end.privacy_loss * 2

    @property
    def _count(self) -> Laplace:
        scale = 1 / (Fraction(self.epsilon) * _COUNT * _ALL)
        return Laplace(sensitivity=1, scale=scale, neighboring=self.neighboring)

    @property
    def _end(self) -> Quantile:
        return Quantile(
            quantile=self.quantile,
            bounds=self.bounds,
            epsilon=Fraction(self.epsilon) * (1 - _COUNT) * _ALL / 2,
            grid=self.grid,
            neighboring=self.neighboring,
        )

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Release the interval.

        Parameters
        ----------
        value : numpy array of shape (n,)
            One real number per record; not changed.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of an array of shape (2,): the lower end and the upper one.
        """
        source, column, end = random_source(rng), without_nan(value), self._end
        count = self._count
        seen = int(count.release(len(column), source).value)
        reach = count.distribution.quantile_above((1 - self.level) * _RARE)
        added = self.padding(max(0, seen - reach), max(0, seen + reach))
        lower, upper = (float(bound) for bound in self.bounds)
        half = float(self.grid.step) / 2 if self.grid.exponent or isinstance(self.bounds[0], float) else 0.0
        ends = [
            float(end.release(np.append(column.astype(np.float64), np.full(many, bound)), source).value)
            for many, bound in zip(added, (lower, upper), strict=True)
        ]
        found = np.clip([min(ends) - half, max(ends) + half], lower, upper)
        return self._release_as(Release, found, source)

    def padding(self, fewest: int, most: int) -> tuple[int, int]:
        """Return how many records are added at the lower bound and at the upper one; public.

        Parameters
        ----------
        fewest, most : int
            How many records there may be.

        Returns
        -------
        tuple of two ints

        Examples
        --------
        >>> QuantileInterval(quantile=0.25, bounds=(0, 100), epsilon=1.0).padding(900, 1100)
        (90, 271)
        """
        error, share = 1 - self.level, Fraction(self.quantile)
        rank = self._end.rank_bound(error * _RARE)
        sizes = np.unique(np.linspace(fewest, most, 1 + min(most - fewest, _MOST >> 8)).astype(np.int64))
        # Between two sizes that are looked at, a quantile of the binomial moves by less than they differ.
        step = float(np.diff(sizes).max(initial=1)) - 1
        found = []
        for chance in (share, 1 - share):
            off = _shortfall(sizes, float(chance), error * (1 / 2 - 2 * _RARE))
            wanted = (rank + step + max(0.0, float(off.max()))) * _SLACK
            found.append(math.ceil(wanted / float(1 - chance)))
        return found[0], found[1]


def _shortfall(sizes: NDArray[np.int64], chance: float, error: float) -> NDArray[np.float64]:
    """Return for numbers of records n an s with ``P(Bin(n, chance) <= chance n - s)`` at most the error."""
    size = sizes.astype(np.float64)
    found = np.minimum(
        size - 1, np.floor(np.nan_to_num(bdtrik(error, np.maximum(size, 1), chance), nan=-1.0))
    )
    for _ in range(2):  # a rounding too many is taken back
        found = np.where(_tail(size, found, chance) <= error, found, np.maximum(found - 1, -1))
    # The least s above which the whole number that may be exceeded is this one.
    return np.where(_tail(size, found, chance) <= error, chance * size - found - 1 + 1e-6, chance * size + 1)


def _tail(size: NDArray[np.float64], most: NDArray[np.float64], chance: float) -> NDArray[np.float64]:
    """Return the probability that a binomial number is at most so many, which are below its size."""
    inside = np.maximum(most, 0)
    found = betainc(np.maximum(size - inside, 1), inside + 1, 1 - chance) * _SLACK
    return np.where(most < 0, 0.0, found)
