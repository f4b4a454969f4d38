"""Plan how many respondents a design needs for an interval of a wanted width."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from sfumato import _check
from sfumato.local.surveys.designs.design import Design
from sfumato.local.surveys.designs.two_samples import UnrelatedQuestionTwoSamples, check_method
from sfumato.local.surveys.estimates.intervals import Method, normal_quantile, share_bounds

__all__ = [
    "MAX_RESPONDENTS",
    "Plan",
    "SamplesPlan",
    "respondents_for_margin",
    "samples_for_margin",
    "smallest_count",
]

MAX_RESPONDENTS: Final = 10**9
"""The largest number that is planned for."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How many respondents are needed, and what they achieve.

    Parameters
    ----------
    respondents : int
        For a comparison, in each of the two groups.
    achieved : float
        The margin or the power with so many.
    exact : bool
        Whether that follows from binomial probabilities, not from a normal approximation.

    Examples
    --------
    >>> from sfumato.local.surveys import TwoCoins, respondents_for_margin
    >>> plan: Plan = respondents_for_margin(TwoCoins(), 0.1)
    >>> plan.achieved <= 0.1, plan.exact
    (True, True)
    """

    respondents: int
    achieved: float
    exact: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SamplesPlan:
    """How many respondents two samples need.

    Parameters
    ----------
    respondents : tuple of two ints
        In the first and in the second sample.
    achieved : float
        The margin with so many.
    exact : bool
        Whether that follows from binomial probabilities, not from a normal approximation.

    Examples
    --------
    >>> from sfumato.local.surveys import UnrelatedQuestionTwoSamples, samples_for_margin
    >>> design = UnrelatedQuestionTwoSamples(first="7/10", second="3/10", between=("1/4", "3/4"))
    >>> plan: SamplesPlan = samples_for_margin(design, 0.1, method="wald")
    >>> len(plan.respondents), plan.achieved <= 0.1
    (2, True)
    """

    respondents: tuple[int, int]
    achieved: float
    exact: bool


def respondents_for_margin(
    design: Design, margin: float, *, level: float = 0.95, method: Method = "clopper-pearson"
) -> Plan:
    """Return the smallest number of respondents for an interval whose half-width is at most a margin.

    Parameters
    ----------
    design : Design
        With several categories each of their intervals meets the margin.
    margin : float
        Strictly between 0 and 1/2.
    level : float
        Of the interval.
    method : {"clopper-pearson", "wilson", "wald"}
        Of the interval.

    Returns
    -------
    Plan
        Whatever is answered, the interval is no wider; it is narrower where nearly all give one answer.

    Notes
    -----
    The interval for the chance of "yes" is widest where half of the answers are "yes". The margin is met by
    this number and not by one less.

    Examples
    --------
    >>> from sfumato.local.surveys import TwoCoins
    >>> plan = respondents_for_margin(TwoCoins(), 0.05)
    >>> 1500 < plan.respondents < 1700, plan.achieved <= 0.05
    (True, True)
    """
    _check.instance("design", design, Design, "samples_for_margin plans for two samples")
    wanted = _margin(margin)
    slope = abs(float(design.slope))

    def half(count: int) -> float:
        lower, upper = share_bounds(count // 2, count, level, method)
        return float(upper - lower) / 2 / slope

    guess = _guessed(wanted * slope, level)
    found = smallest_count(lambda count: half(count) <= wanted, guess)
    return Plan(respondents=found, achieved=half(found), exact=method == "clopper-pearson")


def samples_for_margin(
    design: UnrelatedQuestionTwoSamples,
    margin: float,
    *,
    level: float = 0.95,
    method: Method = "clopper-pearson",
) -> SamplesPlan:
    r"""Return how many respondents two samples need for an interval of at most a half-width.

    Parameters
    ----------
    design : UnrelatedQuestionTwoSamples
    margin : float
        Strictly between 0 and 1/2.
    level : float
        Of the interval.
    method : {"clopper-pearson", "wald"}
        Of the interval.

    Returns
    -------
    SamplesPlan
        Whatever is answered, the interval is no wider.

    Notes
    -----
    With weights :math:`w_i` of the two shares, standard deviations :math:`|w_i| / \sqrt{n_i}` whose squares
    add up are smallest for :math:`n_i \propto |w_i|`, and such deviations that add up themselves, as the ends
    of exact intervals do, for :math:`n_i \propto |w_i|^{2/3}`. With respondents in these proportions, rounded
    up, the margin is met by this total and not by one less.

    Examples
    --------
    >>> from sfumato.local.surveys import UnrelatedQuestionTwoSamples
    >>> design = UnrelatedQuestionTwoSamples(first="7/10", second="3/10", between=("1/4", "3/4"))
    >>> samples_for_margin(design, 0.05, method="wald").respondents
    (1682, 721)
    """
    _check.instance("design", design, UnrelatedQuestionTwoSamples, "respondents_for_margin plans for one")
    wanted = _margin(margin)
    _check.unit_interval("level", level)
    check_method(method)
    weights = np.abs(np.array(design.weights, np.float64)) ** (1 if method == "wald" else 2 / 3)
    shares = weights / weights.sum()

    def split(total: int) -> tuple[int, int]:
        first, second = (max(2, math.ceil(share * total)) for share in shares.tolist())
        return first, second

    def half(total: int) -> float:
        return design.half_width(split(total), level, method)

    guess = _guessed(wanted / float(sum(map(abs, design.weights))), level)
    total = smallest_count(lambda count: half(count) <= wanted, guess)
    return SamplesPlan(respondents=split(total), achieved=half(total), exact=method == "clopper-pearson")


def _margin(margin: float) -> float:
    wanted = _check.unit_interval("margin", margin)
    if wanted >= 0.5:
        _check.refuse("margin", "be below 0.5", margin, "lower it: that one is met without respondents")
    return wanted


def _guessed(margin: float, level: float) -> int:
    """Return about how many respondents a margin of the share of "yes" needs."""
    guess = max(2, int((normal_quantile((1 + level) / 2) / 2 / margin) ** 2))
    if guess > MAX_RESPONDENTS:
        found = f"about {guess:.3g} are needed"
        remedy = "accept a wider one, or take a design with more truth"
        _check.refuse_state("margin", "be met by at most 10**9 respondents", found, remedy)
    return guess


def smallest_count(holds: Callable[[int], bool], guess: int) -> int:
    """Return a number of respondents for which something holds, and not for one less.

    Parameters
    ----------
    holds : callable
        Of a number of respondents.
    guess : int
        Where the search begins.

    Returns
    -------
    int
        At least 2.
    """
    high = low = max(2, guess)
    while not holds(high):
        low, high = high, int(high * 1.1) + 1
    while low > 1 and holds(low):
        high, low = low, int(low / 1.1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
