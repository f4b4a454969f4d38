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
    noisy_tail_probability,
    size_of_release,
)
from sfumato.numerics.interval import Interval

__all__ = ["binomial_test", "proportion_interval"]

_ROUNDS: Final = 60
_REMEDY: Final = "release both counts and pass them to goodness_of_fit without n"
_Alternative = Literal["greater", "less", "two-sided"]


def binomial_test(
    release: LatticeRelease, *, n: int, proportion: float, alternative: _Alternative = "two-sided"
) -> HypothesisTestResult:
    """Test whether a population's proportion is a given one.

    Parameters
    ----------
    release : LatticeRelease
        Of the number of records with the property: one whole number, under replace-one or zero-out.
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
    of all tests of a given epsilon, one-sided tests on such a noisy count with one uniform number added are
    the most powerful; here the count is on whole numbers.

    Examples
    --------
    >>> from sfumato.mechanisms import Laplace
    >>> from sfumato.privacy import Neighboring
    >>> count = Laplace.calibrated(sensitivity=1, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE)
    >>> test = binomial_test(count.release(580, rng=1), n=1000, proportion=0.5)
    >>> test.p_value < 1e-4
    True
    """
    seen, size = _seen(release, n)
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
            _tail(size, proportion if many else 1 - proportion),
            release.distribution,
            seen if many else size - seen,
        ).upper
        for many in sides
    ]
    return HypothesisTestResult(float(seen), min(1.0, min(values) * len(sides)))


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
    seen, size = _seen(release, n)
    risk = (1 - _check.unit_interval("level", level)) / 2
    lower = _minimum_proportion(release, seen, size, risk)
    return Interval(lower, 1 - _minimum_proportion(release, size - seen, size, risk))


def _minimum_proportion(release: LatticeRelease, seen: int, size: int, risk: float) -> float:
    """Return a proportion at or below the smallest one at which so many are no surprise."""
    low, high = 0.0, 1.0
    if noisy_tail_probability(_tail(size, low), release.distribution, seen).upper > risk:
        return 0.0
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        if noisy_tail_probability(_tail(size, middle), release.distribution, seen).upper <= risk:
            low = middle
        else:
            high = middle
    return low


def _tail(size: int, proportion: float) -> Tail:
    def tail(x: Any) -> Any:
        inside = np.clip(x, 1, size)
        found = betainc(inside, size - inside + 1, proportion)
        return np.where(x <= 0, 1.0, np.where(x > size, 0.0, found))

    return tail


def _seen(release: LatticeRelease, n: int) -> tuple[int, int]:
    given: object = release
    if not isinstance(given, LatticeRelease) or isinstance(given.steps, np.ndarray):
        _check.refuse_type("release", "be of one noisy whole number", given, "release a count")
    if Fraction(given.step) != 1:
        _check.refuse("release", "be of a whole number", given.step, "release a count of records")
    return int(given.steps), size_of_release(given, n, _REMEDY)
