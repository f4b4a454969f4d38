"""What every client half must keep, checked on exact output laws, and what is asked of drawn estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from itertools import permutations
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt

from tests.chance import accepts_only, at_least, at_most, frequencies, moments, unrefuted

__all__ = [
    "SEVEN_SIGMA",
    "alike",
    "audited",
    "below_exponential",
    "covers",
    "have_moments",
    "named_alike",
    "of_more_epsilon",
    "reports",
    "within",
    "worst_odds",
]

SEVEN_SIGMA = 6.2
"""Standard deviations that a normal number leaves with probability 1e-9 (6.11), and a little more."""


def worst_odds(law: Callable[[Any], dict[bytes, Fraction]], values: Iterable[Any]) -> Fraction:
    """The greatest ratio of a report's chances, over all reports and all pairs of true values."""
    laws = {value: law(value) for value in values}
    for found in laws.values():
        assert sum(found.values()) == 1
        assert all(chance >= 0 for chance in found.values())
    odds = Fraction(1)
    for one, other in permutations(laws, 2):
        assert laws[one].keys() == laws[other].keys()
        for report, chance in laws[one].items():
            assert (chance > 0) == (laws[other][report] > 0)
            if chance:
                odds = max(odds, chance / laws[other][report])
    return odds


def below_exponential(odds: Fraction, epsilon: float, share: float = 0.999) -> bool:
    """Whether odds are at most e^epsilon, and at least a share of it."""
    with mpmath.workprec(300):
        exact = mpmath.exp(epsilon)
        return bool(share * exact <= mpmath.mpf(odds.numerator) / odds.denominator <= exact)


Law = Mapping[bytes, Fraction]


def reports(counts: Mapping[bytes, int], right: Law) -> Callable[[Law], None]:
    """Return a check of reports against a law: of each one, and of all that are equally likely together.

    Together they tell one epsilon from another, which single reports are too rare for.
    """
    classes = sorted(set(right.values()))

    def together(law: Mapping[bytes, Any]) -> dict[int, Any]:
        sums: dict[int, Any] = dict.fromkeys(range(len(classes)), 0)
        for report, chance in right.items():
            sums[classes.index(chance)] += law.get(report, 0)
        return sums

    each, grouped = frequencies(counts), frequencies(together(counts))

    def check(law: Law) -> None:
        each(law)
        grouped(together(law))

    return check


def of_more_epsilon(law: Law, factor: float) -> dict[bytes, float]:
    """Return a law whose odds are those of so many times the epsilon."""
    powers = {report: float(chance) ** factor for report, chance in law.items()}
    total = sum(powers.values())
    return {report: power / total for report, power in powers.items()}


def named_alike(law: Law, other: Law) -> dict[bytes, Fraction]:
    """Return another law of the same reports in the same order, such as that of another epsilon.

    The bytes of its reports differ, as they name their specification.
    """
    return dict(zip(law, other.values(), strict=True))


def within(
    found: npt.ArrayLike, stddev: npt.ArrayLike, errors: float = SEVEN_SIGMA
) -> Callable[[npt.ArrayLike], None]:
    """Return a check of estimates against what is true: each is within so many standard deviations."""

    def check(truth: npt.ArrayLike) -> None:
        off = abs(np.asarray(found) - np.asarray(truth))
        assert (off <= errors * np.asarray(stddev) + 1e-12).all(), f"estimates are off by {off.max()}"

    return check


def have_moments(
    errors: npt.ArrayLike, variances: npt.ArrayLike, *, tells: float, kurtosis: float = 3.0
) -> None:
    """Assert that errors, one row a repeat, have mean 0 and their variances, and tell these from wrong ones.

    They must reject means that are off by a share ``tells`` of a standard deviation, and variances that are
    less than the right ones by that share, or that the right ones are less than by it.
    """
    accepts_only(
        moments(np.asarray(errors) / np.sqrt(variances), kurtosis=kurtosis),
        (0, 1),
        biased=(tells, 1),
        less_is_stated=(0, 1 - tells),
        more_is_stated=(0, 1 / (1 - tells)),
    )


def audited(found: Any) -> Callable[[float], None]:
    """Return a check of an epsilon that is claimed against the least one that an audit allows."""
    return unrefuted(found.epsilon_lower)


def alike(one: npt.ArrayLike, *, off: float = 0.0) -> Callable[[npt.ArrayLike], None]:
    """Return a check of some draws against others, row by row independent: their means are the same.

    They may be ``off`` by what rounding makes of them.
    """
    first = np.asarray(one, float)

    def check(others: npt.ArrayLike) -> None:
        other = np.asarray(others, float)
        spread = np.sqrt(first.var(axis=0) / len(first) + other.var(axis=0) / len(other)) + 1e-9
        away = np.maximum(abs(first.mean(axis=0) - other.mean(axis=0)) - off, 0) / spread
        assert (away <= SEVEN_SIGMA + 1).all(), f"means are off by {away.max()} standard errors"

    return check


def covers(
    hits: npt.ArrayLike,
    total: int,
    level: float = 0.95,
    *,
    claimed: float = 0.99,
    most: float | None = None,
    under: float = 0.85,
) -> None:
    """Assert that intervals hold at least as often as they say, and in the mean at most so often.

    What they hold must reject a higher level ``claimed``, and that they hold no more than ``under`` of all.
    """
    held = np.atleast_1d(hits)
    accepts_only(at_least(int(held.min()), total), level, a_higher_level=claimed)
    if most is not None:
        accepts_only(at_most(int(held.mean()), total), most, a_lower_level=under)
