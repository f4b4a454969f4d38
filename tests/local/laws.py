"""What every client half must keep, checked on exact output laws: see `worst_odds`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import permutations
from typing import Any

import mpmath

__all__ = ["SEVEN_SIGMA", "below_exponential", "worst_odds"]

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
