"""The binomial test, and confidence intervals for a proportion, from a noisy count."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final, Literal

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
from sfumato.numerics.interval import Interval

__all__ = ["binomial_test", "proportion_interval"]

_ROUNDS: Final = 60
_FINEST: Final = 1 << 30
_REMEDY: Final = "release both counts and pass them to goodness_of_fit without n"
_Alternative = Literal["greater", "less", "two-sided"]


def binomial_test(
    release: LatticeRelease, *, n: int, proportion: float, alternative: _Alternative = "two-sided"
) -> HypothesisTestResult:
    """Test whether a population's proportion is a given one.

    Parameters
    ----------
    release : LatticeRelease
        Of the number of records with the property: one number, whole or on a grid that has the whole numbers,
        under replace-one or zero-out.
    n : int
        How many records there are, public.
    proportion : float
        Of the null hypothesis, from 0 to 1.
    alternative : {"greater", "less", "two-sided"}
        On which side the proportion is larger or smaller; the null hypothesis of a one-sided test is the
        other side with ``proportion`` itself.

    Returns
    -------
    HypothesisTestResult
        Its p-value is the probability that a binomial count and the noise are as far out, which is exact but
        for rounding up; twice the smaller one for both sides.

    Raises
    ------
    NeighboringMismatch
        If the release is under add/remove: where n is public, neighbors have the same n.

    Notes
    -----
    Post-processing of the release: its guarantee stays, that of a replaced or a zeroed record.

    References
    ----------
    Awan, Slavkovic, "Differentially private uniformly most powerful tests for binomial data" (NeurIPS 2018):
    of all tests of a given epsilon, or of an epsilon and a delta, the one-sided test on a count with Tulap
    noise is the most powerful: pass a release of `CanonicalNoise` on a grid. On whole numbers it is less so.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> from sfumato.privacy import Neighboring
    >>> count = Laplace.calibrated(sensitivity=1, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE)
    >>> test = binomial_test(count.release(580, rng=1), n=1000, proportion=0.5)
    >>> test.p_value < 1e-4
    True
    """
    seen, size, per = _seen(release, n)
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
    # To be few is to be many among those without the property.
    values = [
        noisy_tail_probability(
            _tail(size, proportion if many else 1 - proportion, per),
            release.distribution,
            seen if many else size * per - seen,
        ).upper
        for many in sides
    ]
    return HypothesisTestResult(float(release.value), min(1.0, min(values) * len(sides)))


def proportion_interval(release: LatticeRelease, *, n: int, level: float = 0.95) -> Interval:
    """Return an interval for a population's proportion: sampling and noise are inside.

    Parameters
    ----------
    release : LatticeRelease
        As in `binomial_test`.
    n : int
        How many records there are, public.
    level : float
        Wanted coverage, strictly between 0 and 1.

    Returns
    -------
    Interval
        The proportions that neither one-sided test refuses at half the error: Clopper and Pearson's interval,
        with the noise in the tails. It covers with at least the level, for every proportion.

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
    seen, size, per = _seen(release, n)
    risk = (1 - _check.unit_interval("level", level)) / 2
    lower = _minimum_proportion(release, seen, size, risk, per)
    return Interval(lower, 1 - _minimum_proportion(release, size * per - seen, size, risk, per))


def _minimum_proportion(release: LatticeRelease, seen: int, size: int, risk: float, per: int) -> float:
    """Return a proportion at or below the smallest one at which so many are no surprise."""
    low, high = 0.0, 1.0
    if noisy_tail_probability(_tail(size, low, per), release.distribution, seen).upper > risk:
        return 0.0
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        if noisy_tail_probability(_tail(size, middle, per), release.distribution, seen).upper <= risk:
            low = middle
        else:
            high = middle
    return low


def _tail(size: int, proportion: float, per: int) -> Tail:
    """Return the tail of the count, in steps of which a whole number ``per`` is one record."""

    def tail(steps: Any) -> Any:
        x = np.ceil(np.asarray(steps, dtype=np.float64) / per)
        inside = np.clip(x, 1, size)
        found = betainc(inside, size - inside + 1, proportion)
        return np.where(x <= 0, 1.0, np.where(x > size, 0.0, found))

    return tail


def _seen(release: LatticeRelease, n: int) -> tuple[int, int, int]:
    """Return the noisy count in steps, the number of records, and the steps of one record."""
    given: object = release
    if not isinstance(given, LatticeRelease) or isinstance(given.steps, np.ndarray):
        _check.refuse_type("release", "be of one noisy whole number", given, "release a count")
    check_counts(given)
    step = Fraction(given.step)
    if step.numerator != 1 or step.denominator > _FINEST:
        rule = "be of a whole number, on a grid of at most 2**30 steps a record"
        _check.refuse("release", rule, given.step, "release a count of records")
    return int(given.steps), size_of_release(given, n, _REMEDY), step.denominator
