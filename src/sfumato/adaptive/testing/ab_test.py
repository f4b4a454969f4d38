"""A/B tests: two proportions compared under differential privacy, with the power known before."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.adaptive.testing.count_distributions import (
    ROUNDING,
    IntegerDistribution,
    binomial,
    discrete_laplace,
)
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.mechanisms.statistics.hypothesis_test.binomial_test import proportion_interval
from sfumato.mechanisms.statistics.hypothesis_test.p_value import HypothesisTestResult
from sfumato.numerics.interval import Interval
from sfumato.numerics.randomness.source import Rng
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["ABTest"]

_NUISANCE: Final = 0.02
"""The share of the false positive rate with which the common proportion may be outside of its interval."""
_UNUSUAL: Final = 1e-5
"""The probability of totals that a bound on the power gives up."""
_UNUSUAL_OF_ONE: Final = 1e-3
_BLOCKS: Final = 24
"""Blocks of totals, each with a critical value of its own."""
_MANY: Final = 1 << 16
_WINDOW: Final = 8
_LARGEST: Final = 1 << 28
_HALVINGS: Final = 34


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ABTest:
    r"""A test whether a property is as frequent in one arm of an experiment as in the other.

    Parameters
    ----------
    records : int
        In each arm; public, as is who is in which arm.
    epsilon : float
        Of the release of both counts: pure differential privacy for one replaced outcome.
    false_positive_rate : float
        The test rejects with at most this probability where both proportions are one.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    Notes
    -----
    Guarantee: `release` has ``privacy_loss`` under `Neighboring.REPLACE_ONE`: the outcome of one record, in
    the arm where it is, is another. That moves one count by one at most. All else is post-processing.

    *The test is valid for every common proportion and every number of records*, with the noise's own
    distribution: no limit is taken. *Proof.* Let D be the difference of both counts, and N that of both
    noises. D is a sum of independent steps, one for each pair of records, to :math:`\pm 1` with
    probability :math:`q = p(1-p)` each. Such a step is log-concave for :math:`q \le 1/3`, and so is discrete
    Laplace noise, hence D + N: it is symmetric and falls from 0 on. So for :math:`c \ge 1` the probability
    of :math:`|D + N| \ge c` rises with q: its derivative is :math:`2n (f(c-1) - f(c)) \ge 0`, where f is the
    probability function of N and all steps but one. The noisy total of both counts gives an interval for p,
    by the exact tails, that misses it with probability g at most, a fiftieth of the false positive rate. The
    p-value is g and the probability of :math:`|D + N|` being as large at the largest q in the interval, as in
    Berger and Boos (1994).

    References
    ----------
    Berger, Boos (1994), P Values Maximized Over a Confidence Set for the Nuisance Parameter. Ghosh,
    Roughgarden, Sundararajan (2009): the noise.

    Examples
    --------
    >>> test = ABTest.planned(first=0.10, second=0.14, epsilon=0.5, power=0.8)
    >>> test.records, round(test.power(first=0.10, second=0.14), 2)
    (1248, 0.8)
    >>> rng = np.random.default_rng(0)
    >>> release = test.release(rng.random(test.records) < 0.10, rng.random(test.records) < 0.14, rng=1)
    >>> test.result(release).p_value < 0.05
    True
    """

    records: int
    epsilon: float
    false_positive_rate: float = 0.05

    def __post_init__(self) -> None:
        remedy = "pass how many records either arm has; it must be public"
        if _check.integer("records", self.records, minimum=1, remedy=remedy) > _LARGEST:
            _check.refuse("records", "be at most 2**28", self.records, remedy)
        _check.positive("epsilon", self.epsilon)
        if not 1e-4 <= self.epsilon <= 50:
            _check.refuse("epsilon", "be from 0.0001 to 50", self.epsilon, "pass 1.0, say")
        rate = _check.unit_interval("false_positive_rate", self.false_positive_rate)
        if rate < 1e-6:
            _check.refuse("false_positive_rate", "be at least 1e-6", rate, "pass 0.05, say")

    @classmethod
    def planned(
        cls,
        *,
        first: float,
        second: float,
        epsilon: float,
        power: float = 0.8,
        false_positive_rate: float = 0.05,
    ) -> Self:
        """Return a test with records enough to find a difference with a wanted probability.

        Parameters
        ----------
        first, second : float
            Proportions of the two populations that the test should tell apart.
        epsilon, false_positive_rate : float
            As in the class.
        power : float
            The probability of rejecting, at least.

        Returns
        -------
        ABTest
            With a number of records for which `power`, a lower bound, is enough, and for which eight numbers
            below it are not.

        Raises
        ------
        ParameterError
            If a parameter breaks its rule, or more than 2**28 records are needed.
        """
        wanted = _check.unit_interval("power", power)
        if _check.share("second", second) == _check.share("first", first):
            _check.refuse("second", "be another proportion than first", second, "pass the one to be found")

        def enough(records: int, *, sharp: bool = True) -> bool:
            found = cls(records=records, epsilon=epsilon, false_positive_rate=false_positive_rate)
            return found._power(first, second, found._blocks if sharp else 1) >= wanted

        low, high = 0, 1
        while not enough(high, sharp=False):
            low, high = high, 2 * high
            if high > _LARGEST:
                remedy = "plan for proportions further apart, less power, or a larger epsilon"
                _check.refuse("second", "be found with 2**28 records in each arm", second, remedy)
        for sharp in (False, True):
            # The sharp bound takes longer and needs fewer. Its blocks reach further: is the end still enough?
            while not enough(high, sharp=sharp):
                high += high // 64 + 1
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if enough(middle, sharp=sharp) else (middle, high)
            low = high // 2
        # The power does not rise with every record: a little below there may be a number that is enough.
        while fewer := [records for records in range(max(1, high - _WINDOW), high) if enough(records)]:
            high = fewer[0]
        return cls(records=high, epsilon=epsilon, false_positive_rate=false_positive_rate)

    @property
    def mechanism(self) -> Laplace:
        """The mechanism that adds noise to both counts."""
        return Laplace.calibrated(sensitivity=1, epsilon=self.epsilon, neighboring=Neighboring.REPLACE_ONE)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """What `release` costs."""
        return self.mechanism.privacy_loss

    def release(self, first: Any, second: Any, rng: Rng = None) -> LatticeRelease:
        """Release how many records of either arm have the property.

        Parameters
        ----------
        first, second : array of bool
            Of each arm's records; others than 0 count, NaN does not.
        rng : None, int or numpy Generator
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        LatticeRelease
            Of two counts.

        Raises
        ------
        ParameterError
            If an arm has another number of records.
        """
        counts = [self._count("first", first), self._count("second", second)]
        return self.mechanism.release(np.array(counts, dtype=np.int64), rng)

    def result(self, release: LatticeRelease) -> HypothesisTestResult:
        """Return the difference of the noisy proportions, and its p-value for proportions that are one.

        Parameters
        ----------
        release : LatticeRelease
            Of this test.

        Returns
        -------
        HypothesisTestResult
            The statistic is the first proportion less the second. The p-value is two-sided and valid for
            every population (see the class); reject where it is at most the false positive rate.
        """
        first, second = self._counts(release)
        low, high = self._common(first + second), self._common(first + second, upper=True)
        value = self._nuisance + self._exceeded(_largest_variance(low, high), abs(first - second))
        return HypothesisTestResult((first - second) / self.records, min(1.0, value))

    def interval(self, release: LatticeRelease, level: float = 0.95) -> Interval:
        """Return an interval for the first population's proportion less the second's.

        Parameters
        ----------
        release : LatticeRelease
            Of this test.
        level : float
            Coverage, at least, for every population; strictly between 0 and 1.

        Returns
        -------
        Interval
            From the exact intervals of both proportions, each at half the error, with the noise in the tails:
            they hold together with at least the level. `two_proportions_interval` is narrower, and right in
            the limit of many records.
        """
        self._counts(release)
        error = 1 - _check.unit_interval("level", level)
        steps = np.asarray(release.steps)
        arms = [
            proportion_interval(replace(release, steps=int(one)), n=self.records, level=1 - error / 2)
            for one in steps
        ]
        low = math.nextafter(arms[0].lower - arms[1].upper, -2)
        return Interval(max(-1.0, low), min(1.0, math.nextafter(arms[0].upper - arms[1].lower, 2)))

    def power(self, *, first: float, second: float) -> float:
        """Return a lower bound on the probability of rejecting, for two populations.

        Parameters
        ----------
        first, second : float
            Their proportions.

        Returns
        -------
        float
            Over sampling and noise, by their exact distributions. Totals are taken in 24 blocks at most, 6
            from 65,536 records on, each with the largest critical value of its totals. With one block a
            total it is exact, up to 1e-5.
        """
        shares = _check.share("first", first), _check.share("second", second)
        return self._power(*shares, self._blocks)

    def _power(self, first: float, second: float, blocks: int) -> float:
        """Return a bound on the power from so many blocks of totals; the more, the closer."""
        noise = discrete_laplace(self._scale)
        one, other = (binomial(self.records, share).plus(noise) for share in (first, second))
        total, unusual = one.plus(other), _UNUSUAL if blocks > 1 else _UNUSUAL_OF_ONE
        highest = total.first_rarer(unusual / 2)
        lowest = -total.negated().first_rarer(unusual / 2)
        ends = np.unique(np.linspace(lowest, highest + 1, blocks + 1).astype(np.int64)).tolist()
        found = 0.0
        for start, end in itertools.pairwise(ends):
            critical = self._critical(start, end - 1)
            found += _far_apart(one, other, (start, end - 1), critical)
        return max(0.0, found - ROUNDING * len(ends))

    def _critical(self, lowest: int, highest: int) -> int:
        """Return a difference that is significant whatever the total is between two."""
        low = self._common(lowest, halvings=_HALVINGS // 2)
        high = self._common(highest, upper=True, halvings=_HALVINGS // 2)
        variance = _largest_variance(low, high)
        left = (self.false_positive_rate - self._nuisance - ROUNDING) / 2
        return max(1, self._difference(variance).first_rarer(left))

    @property
    def _blocks(self) -> int:
        return _BLOCKS if self.records < _MANY else _BLOCKS // 4

    @property
    def _scale(self) -> float:
        return _noise_scale(self.epsilon)

    @property
    def _nuisance(self) -> float:
        return _NUISANCE * self.false_positive_rate

    def _difference(self, variance: float) -> IntegerDistribution:
        """Return the distribution of the noisy difference where a record's variance is so large."""
        # No subtraction from 1, which would lose a small variance's digits.
        share = 2 * variance / (1 + math.sqrt(max(0.0, 1 - 4 * variance)))
        counts = binomial(self.records, share)
        return counts.plus(counts.negated()).plus(_two_noises(self._scale))

    def _exceeded(self, variance: float, size: int) -> float:
        """Return the probability, rounded up, that the noisy difference is that large on either side."""
        if size < 1:
            return 1.0
        return 2 * self._difference(variance).at_least(size) + ROUNDING

    def _common(self, total: int, *, upper: bool = False, halvings: int = _HALVINGS) -> float:
        """Return an end of the interval for the common proportion, given the noisy total.

        It is the wider, the fewer halvings it is found by.
        """
        size, noise = 2 * self.records, _two_noises(self._scale)
        if not upper:
            # By symmetry of the noise, from the upper end for those without the property.
            return 1 - self._common(size - total, upper=True, halvings=halvings)
        risk, below = self._nuisance / 2, np.append(0.0, noise.cumulated())
        low, high = 0.0, 1.0
        for _ in range(halvings):
            middle = (low + high) / 2
            counts = binomial(size, middle)
            left = total - counts.first - np.arange(len(counts.masses)) - noise.first + 1
            fewer = float(counts.masses @ below[np.minimum(np.maximum(left, 0), len(below) - 1)])
            low, high = (low, middle) if fewer + ROUNDING <= risk else (middle, high)
        return high

    def _count(self, name: str, data: Any) -> int:
        """Return how many records of an arm have the property."""
        array = np.asarray(data)
        if array.ndim != 1 or array.dtype.kind not in "biuf":
            _check.refuse_type(name, "be one number or bool for each record", data, "pass an array of bools")
        if len(array) != self.records:
            remedy = "make the test for as many as there are"
            _check.refuse_state(name, f"have {self.records} records", "it has another number", remedy)
        return int(np.count_nonzero(np.nan_to_num(array.astype(np.float64), nan=0.0)))

    def _counts(self, release: object) -> tuple[int, int]:
        """Return the noisy counts of a release, or refuse what is none of this test."""
        remedy = "pass what this test's release returned"
        if not isinstance(release, LatticeRelease) or np.shape(release.steps) != (2,) or release.step != 1:
            _check.refuse_type("release", "be of two noisy counts", release, remedy)
        if release.loss != self.privacy_loss:
            _check.refuse_state("release", f"be of {self}", "it has another privacy loss", remedy)
        first, second = np.asarray(release.steps).tolist()
        return int(first), int(second)


@lru_cache(maxsize=16)
def _noise_scale(epsilon: float) -> float:
    """Return the scale of the noise on either count."""
    return float(ABTest(records=1, epsilon=epsilon).mechanism.scale)


@lru_cache(maxsize=16)
def _two_noises(scale: float) -> IntegerDistribution:
    """Return the distribution of the sum of two noises, which is that of their difference."""
    one = discrete_laplace(scale)
    return one.plus(one)


def _far_apart(
    one: IntegerDistribution, other: IntegerDistribution, totals: tuple[int, int], critical: int
) -> float:
    """Return how probable it is that two integers add up to one of some totals, and differ by as much."""
    a = one.first + np.arange(len(one.masses))
    below = np.append(0.0, other.cumulated())

    def at_most(limit: NDArray[np.int64]) -> NDArray[np.float64]:
        reached: NDArray[np.float64] = below[np.clip(limit - other.first + 1, 0, len(below) - 1)]
        return reached

    first, last = totals[0] - a, totals[1] - a
    above = at_most(last) - at_most(np.maximum(first, a + critical) - 1)
    under = at_most(np.minimum(last, a - critical)) - at_most(first - 1)
    return float(one.masses @ (np.maximum(above, 0.0) + np.maximum(under, 0.0)))


def _largest_variance(low: float, high: float) -> float:
    """Return the largest p (1 - p) between two proportions."""
    nearest = min(max(0.5, low), high)
    return nearest * (1 - nearest)
