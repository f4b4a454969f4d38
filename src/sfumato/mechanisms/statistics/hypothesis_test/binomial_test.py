"""The binomial test, and confidence intervals for a proportion, from a noisy count."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Literal, final

import numpy as np
from scipy.special import betainc

from sfumato import _check
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.statistics.hypothesis_test.p_value import (
    HypothesisTestResult,
    Tail,
    check_counts,
    noisy_tail_probability,
    size_of_release,
)
from sfumato.numerics.distributions.discrete import SymmetricDistribution
from sfumato.numerics.interval import Interval

__all__ = ["binomial_test", "proportion_interval", "reach_of_two"]

_ROUNDS: Final = 60
_FINEST: Final = 1 << 30
_VALUES: Final = 1 << 11
_SLACK: Final = 1e-9
_REMEDY: Final = "release the counts with and without the property, and leave n out"
_GIVEN: Final = 1e-4
"""Of a p-value: the chance that there are more records than the noisy total says, or fewer."""
_SHARE: Final = 1 / 25
"""Of an interval's error, the same."""
_Alternative = Literal["greater", "less", "two-sided"]


def binomial_test(
    release: LatticeRelease,
    *,
    n: int | None = None,
    proportion: float,
    alternative: _Alternative = "two-sided",
) -> HypothesisTestResult:
    """Test whether a population's proportion is a given one.

    Parameters
    ----------
    release : LatticeRelease
        Of the number of records with the property: one number, whole or on a grid that has the whole numbers,
        under replace-one or zero-out. Or of two: of those with it and of those without, without ``n``.
    n : int, optional
        How many records there are, where that is public. Of two numbers the sum says how many there may be.
    proportion : float
        Of the null hypothesis, from 0 to 1.
    alternative : {"greater", "less", "two-sided"}
        On which side the proportion is larger or smaller; the null hypothesis of a one-sided test is the
        other side with ``proportion`` itself.

    Returns
    -------
    HypothesisTestResult
        Its p-value is the probability that a binomial count and the noise are as far out, which is exact but
        for rounding up; twice the smaller one for both sides. Without n it is the greatest over the numbers
        of records that the noisy total allows, and 1e-4 for the others. Its statistic is the first number.

    Raises
    ------
    NeighboringMismatch
        If n is given and the release is under add/remove: where n is public, neighbors have the same n.

    Notes
    -----
    Post-processing of the release: its guarantee stays, that of a replaced or a zeroed record, or of an added
    one.

    Without n, a count as large as the one seen is the more likely the more records there are, and one as
    small the fewer: so the greatest p-value is that of the largest (the smallest) number that the total
    allows, which the truth exceeds with a probability of at most 1e-4 (Berger, Boos 1994). For proportions up
    to a half the first number is tested, above it the second, since the error of the total matters in
    proportion to the proportion.

    References
    ----------
    Awan, Slavkovic, "Differentially private uniformly most powerful tests for binomial data" (NeurIPS 2018):
    of all tests of a given epsilon, or of an epsilon and a delta, the one-sided test on a count with Tulap
    noise is the most powerful: pass a release of `CanonicalNoise` on a grid. On whole numbers it is less so.
    Berger, Boos, "P values maximized over a confidence set for the nuisance parameter" (JASA 1994).

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> from sfumato.privacy import Neighboring
    >>> count = Laplace.calibrated(sensitivity=1, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE)
    >>> test = binomial_test(count.release(580, rng=1), n=1000, proportion=0.5)
    >>> test.p_value < 1e-4
    True

    Nobody needs to know how many records there are:

    >>> answers = Laplace.calibrated(sensitivity=1, epsilon=1.0).release(np.array([580, 420]), rng=1)
    >>> binomial_test(answers, proportion=0.5).p_value < 1e-3
    True
    """
    given = _counted(release, n)
    proportion = _check.finite("proportion", proportion)
    if not 0 <= proportion <= 1:
        _check.refuse(
            "proportion", "be from 0 to 1", proportion, "pass the proportion of the null hypothesis"
        )
    sides = {"greater": (True,), "less": (False,), "two-sided": (True, False)}.get(str(alternative))
    if sides is None:
        _check.refuse(
            "alternative", "be 'greater', 'less' or 'two-sided'", alternative, "pass 'two-sided' if unsure"
        )
    values = [given.p_value(proportion, _GIVEN, many=many) for many in sides]
    return HypothesisTestResult(given.first / given.per, min(1.0, min(values) * len(sides)))


def proportion_interval(release: LatticeRelease, *, n: int | None = None, level: float = 0.95) -> Interval:
    """Return an interval for a population's proportion: sampling and noise are inside.

    Parameters
    ----------
    release : LatticeRelease
        As in `binomial_test`.
    n : int, optional
        As in `binomial_test`.
    level : float
        Wanted coverage, strictly between 0 and 1.

    Returns
    -------
    Interval
        The proportions that neither one-sided test refuses at half the error: Clopper and Pearson's interval,
        with the noise in the tails. It covers with at least the level, for every proportion. Without n a
        twenty-fifth of the error is that of the total.

    Raises
    ------
    NeighboringMismatch
        As in `binomial_test`.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> from sfumato.privacy import Neighboring
    >>> count = Laplace.calibrated(sensitivity=1, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE)
    >>> lower, upper, _ = proportion_interval(count.release(580, rng=1), n=1000)
    >>> round(lower, 2), round(upper, 2)
    (0.55, 0.61)
    """
    given, risk = _counted(release, n), (1 - _check.unit_interval("level", level)) / 2
    return Interval(given.minimum(risk), 1 - given.swapped().minimum(risk))


@final
@dataclass(frozen=True, slots=True)
class _Counted:
    """Noisy counts of the records with and without a property, in steps."""

    first: int
    second: int
    per: int
    """Steps of one record."""
    size: int | None
    """How many records there are, where that is public: then the second count is the rest."""
    noise: SymmetricDistribution

    def swapped(self) -> _Counted:
        """Return the counts without and with the property."""
        return replace(self, first=self.second, second=self.first)

    def p_value(self, proportion: float, given: float, *, many: bool) -> float:
        """Bound the chance of a first count as large, or as small, and add ``given`` for a private size."""
        if not many:  # to be few is to be many among those without the property
            return self.swapped().p_value(1 - proportion, given, many=True)
        if self.size is not None:
            return self._tail(self.size, proportion, self.first)
        reach, total = reach_of_two(self.noise, given), self.first + self.second
        if proportion <= 1 / 2:
            found = self._tail(max(0, (total + reach) // self.per), proportion, self.first)
        else:
            least = max(0, -((reach - total) // self.per))
            found = self._tail(least, proportion, least * self.per - self.second)
        return min(1.0, found * (1 + _SLACK) + given)

    def minimum(self, risk: float) -> float:
        """Return a proportion at or below the smallest one at which so many are no surprise."""
        given = 0.0 if self.size is not None else _SHARE * risk
        # The p-value rises with the proportion up to a half, and beyond it, but perhaps not between.
        low = self._first_accepted(0.0, 1.0 if self.size is not None else 0.5, risk, given)
        return low if low is not None else self._first_accepted(0.5, 1.0, risk, given) or 1.0

    def _first_accepted(self, low: float, high: float, risk: float, given: float) -> float | None:
        """Return a proportion below all accepted ones between two; None if the upper one is refused."""
        if self.p_value(high, given, many=True) <= risk:
            return None
        if self.p_value(math.nextafter(low, 1.0) if low else 0.0, given, many=True) > risk:
            return low
        for _ in range(_ROUNDS):
            middle = (low + high) / 2
            if self.p_value(middle, given, many=True) <= risk:
                low = middle
            else:
                high = middle
        return low

    def _tail(self, size: int, proportion: float, x: int) -> float:
        """Bound the probability that a binomial count and noise are at least x, in steps."""
        return noisy_tail_probability(_tail(size, proportion, self.per), self.noise, x).upper


@lru_cache(maxsize=64)
def reach_of_two(noise: SymmetricDistribution, risk: float) -> int:
    """Return a number of steps that the sum of two noises exceeds with at most that risk.

    Each is rounded up to a multiple of a width, so that few values are left; beyond the last one it is with
    an eighth of the risk.
    """
    far = noise.quantile_above(risk / 8)
    width = max(1, -(-(2 * far + 1) // _VALUES))
    ends = np.arange(-far, far + width, width)
    beyond = np.array([noise.upper_tail(int(end) + 1)[:2] for end in ends])
    mass = np.maximum(0.0, np.append(1.0, beyond[:-1, 1]) - beyond[:, 0])
    sums = np.convolve(mass, mass)
    above = np.append(np.cumsum(sums[::-1])[::-1][1:], 0.0) * (1 + _SLACK)
    first = int((above <= risk * 3 / 4).argmax())
    return int(2 * ends[0] + first * width)


def _tail(size: int, proportion: float, per: int) -> Tail:
    """Return the tail of the count, in steps of which a whole number ``per`` is one record."""

    def tail(steps: Any) -> Any:
        x = np.ceil(np.asarray(steps, dtype=np.float64) / per)
        inside = np.clip(x, 1, size)
        found = betainc(inside, size - inside + 1, proportion)
        return np.where(x <= 0, 1.0, np.where(x > size, 0.0, found))

    return tail


def _counted(release: LatticeRelease, n: int | None) -> _Counted:
    """Return the noisy counts of a release, or refuse it."""
    given: object = release
    if not isinstance(given, LatticeRelease):
        _check.refuse_type("release", "be of one noisy whole number, or of two", given, "release a count")
    check_counts(given)
    step = Fraction(given.step)
    if step.numerator != 1 or step.denominator > _FINEST:
        rule = "be of a whole number, on a grid of at most 2**30 steps a record"
        _check.refuse("release", rule, given.step, "release a count of records")
    counts = np.atleast_1d(given.steps)
    if counts.shape == (2,) and n is None:
        first, second = counts.tolist()
        return _Counted(first, second, step.denominator, None, given.distribution)
    if n is None:
        remedy = f"pass it if it is public, or {_REMEDY}"
        _check.refuse_state("n", "be given for one number", "it is None", remedy)
    if isinstance(given.steps, np.ndarray):
        _check.refuse_type("release", "be of one noisy whole number where n is given", given, "leave n out")
    size, seen = size_of_release(given, n, _REMEDY), int(given.steps)
    return _Counted(seen, size * step.denominator - seen, step.denominator, size, given.distribution)
