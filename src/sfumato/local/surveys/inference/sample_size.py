"""How many respondents a design needs: for a margin, or to tell a prevalence from another."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrik, ndtr

from sfumato import _check
from sfumato.local.surveys.designs.binary import BinaryDesign
from sfumato.local.surveys.designs.design import Design
from sfumato.local.surveys.designs.two_samples import UnrelatedQuestionTwoSamples, check_method
from sfumato.local.surveys.estimates.intervals import Method, normal_quantile, share_bounds
from sfumato.local.surveys.inference.fisher_exact import exact_power, feasible

__all__ = [
    "Plan",
    "SamplesPlan",
    "power",
    "power_between",
    "respondents_between",
    "respondents_for_margin",
    "respondents_to_tell",
    "samples_for_margin",
]

_Array: TypeAlias = NDArray[np.float64]
_MOST: Final = 10**9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How many respondents are needed, and what they give.

    Parameters
    ----------
    respondents : int
        For a comparison, in each of the two groups.
    achieved : float
        The margin or the power with so many.
    exact : bool
        Whether that follows from binomial probabilities, not from a normal approximation.
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
    """

    respondents: tuple[int, int]
    achieved: float
    exact: bool


def respondents_for_margin(
    design: Design, margin: float, *, level: float = 0.95, method: Method = "clopper-pearson"
) -> Plan:
    """Return the least number of respondents for an interval whose half-width is at most a margin.

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
    """
    _check.instance("design", design, Design, "samples_for_margin plans for two samples")
    wanted = _margin(margin)
    slope = abs(float(design.slope))

    def half(count: int) -> float:
        lower, upper = share_bounds(count // 2, count, level, method)
        return float(upper - lower) / 2 / slope

    guess = _guessed(wanted * slope, level)
    found = _least(lambda count: half(count) <= wanted, guess)
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
    add up are least for :math:`n_i \propto |w_i|`, and such deviations that add up themselves, as the ends of
    exact intervals do, for :math:`n_i \propto |w_i|^{2/3}`. With respondents in these proportions, rounded
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
    total = _least(lambda count: half(count) <= wanted, guess)
    return SamplesPlan(respondents=split(total), achieved=half(total), exact=method == "clopper-pearson")


def _margin(margin: float) -> float:
    wanted = _check.unit_interval("margin", margin)
    if wanted >= 0.5:
        _check.refuse("margin", "be below 0.5", margin, "that one is met without respondents")
    return wanted


def _guessed(margin: float, level: float) -> int:
    """Return about how many respondents a margin of the share of "yes" needs."""
    guess = max(2, int((normal_quantile((1 + level) / 2) / 2 / margin) ** 2))
    if guess > _MOST:
        remedy = "a wider one, or more truth"
        _check.refuse("margin", "be met by at most 10**9 respondents", f"about {guess:.3g}", remedy)
    return guess


def power(
    design: BinaryDesign,
    *,
    null: float,
    prevalence: float,
    respondents: int,
    false_positive_rate: float = 0.05,
    two_sided: bool = True,
) -> float:
    """Return the chance that the exact test of one prevalence finds that it is another.

    Parameters
    ----------
    design : BinaryDesign
    null, prevalence : float
        What is tested, and what is true; from 0 to 1, different.
    respondents : int
    false_positive_rate : float
        Of the test: `goodness_of_fit` for two answers, which errs at most so often.
    two_sided : bool
        False puts all of it on the side of ``prevalence``.

    Returns
    -------
    float
        Exact: a sum of binomial probabilities.
    """
    count = _check.integer("respondents", respondents, minimum=1)
    rates = _rates(design, null, prevalence)
    risk = _check.unit_interval("false_positive_rate", false_positive_rate)
    return float(_binomial_power(np.array([count]), *rates, risk, two_sided=two_sided)[0])


def respondents_to_tell(
    design: BinaryDesign,
    *,
    null: float,
    prevalence: float,
    power: float = 0.8,
    false_positive_rate: float = 0.05,
    two_sided: bool = True,
) -> Plan:
    """Return how many respondents tell one prevalence from another with a wanted power.

    Parameters
    ----------
    design, null, prevalence, false_positive_rate, two_sided
        As in `power`.
    power : float
        Wanted chance of finding the difference.

    Returns
    -------
    Plan
        Exact. Powers go up and down a little as respondents are added one by one: one less would miss what is
        wanted, and none of the next 20 (of the next thrice the square root, for many) does.
    """
    wanted = _check.unit_interval("power", power)
    risk = _check.unit_interval("false_positive_rate", false_positive_rate)
    first, second = _rates(design, null, prevalence)
    z = normal_quantile(1 - risk / (2 if two_sided else 1)), normal_quantile(wanted)
    spread = z[0] * math.sqrt(first * (1 - first)) + z[1] * math.sqrt(second * (1 - second))
    guess = _affordable("prevalence", (spread / (first - second)) ** 2)
    width = math.ceil(max(20, 3 * math.sqrt(guess)))
    middle = round(guess)
    while True:
        counts = np.arange(max(1, middle - width), middle + width + 1)
        powers = _binomial_power(counts, first, second, risk, two_sided=two_sided)
        missed = np.flatnonzero(powers < wanted)
        place = int(missed[-1]) + 1 if len(missed) else 0
        if place + width >= len(counts) and place:
            middle += width
        elif place or counts[0] == 1:
            return Plan(respondents=int(counts[place]), achieved=float(powers[place]), exact=True)
        else:
            middle -= width


def power_between(
    design: BinaryDesign,
    *,
    first: float,
    second: float,
    respondents: int,
    false_positive_rate: float = 0.05,
) -> Plan:
    """Return the chance that `two_sample` tells two groups with different prevalences apart.

    Parameters
    ----------
    design : BinaryDesign
    first, second : float
        The prevalences of the two groups.
    respondents : int
        In each of the groups.
    false_positive_rate : float

    Returns
    -------
    Plan
        Exact, that of Fisher's test, up to 2,000 respondents in each group; beyond that a normal
        approximation with a correction for continuity.
    """
    count = _check.integer("respondents", respondents, minimum=1)
    risk = _check.unit_interval("false_positive_rate", false_positive_rate)
    rates = _rates(design, first, second)
    return Plan(respondents=count, achieved=_between(count, *rates, risk), exact=feasible(count))


def respondents_between(
    design: BinaryDesign,
    *,
    first: float,
    second: float,
    power: float = 0.8,
    false_positive_rate: float = 0.05,
) -> Plan:
    """Return how many respondents in each of two groups tell their prevalences apart.

    Parameters
    ----------
    design, first, second, false_positive_rate
        As in `power_between`.
    power : float
        Wanted chance of finding the difference.

    Returns
    -------
    Plan
        The power is reached by this number and not by one less; exact where `power_between` is.
    """
    wanted = _check.unit_interval("power", power)
    risk = _check.unit_interval("false_positive_rate", false_positive_rate)
    one, two = _rates(design, first, second)
    guess = _corrected_size(one, two, normal_quantile(1 - risk / 2), normal_quantile(wanted))
    start = int(_affordable("second", guess))
    found = _least(lambda count: _between(count, one, two, risk) >= wanted, start)
    return Plan(respondents=found, achieved=_between(found, one, two, risk), exact=feasible(found))


def _rates(design: BinaryDesign, one: float, two: float) -> tuple[float, float]:
    _check.instance("design", design, BinaryDesign, "chi_square_power plans for more answers")
    rates = design.yes_rate(one), design.yes_rate(two)
    if rates[0] == rates[1]:
        _check.refuse("prevalence", "differ from the other one", two, "nothing is to be told apart")
    return rates


def _affordable(name: str, guess: float) -> float:
    if guess > _MOST:
        remedy = "a greater difference, or a design with more truth"
        _check.refuse(name, "be told apart by at most 10**9 respondents", f"about {guess:.3g}", remedy)
    return max(1.0, guess)


def _least(holds: Callable[[int], bool], guess: int) -> int:
    """Return a count for which something holds, and not for one less."""
    high = low = max(2, guess)
    while not holds(high):
        low, high = high, int(high * 1.1) + 1
    while low > 1 and holds(low):
        high, low = low, int(low / 1.1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _binomial_power(
    counts: NDArray[np.int64], null: float, true: float, risk: float, *, two_sided: bool
) -> _Array:
    """Return the power of the binomial test with each number of trials."""
    share = risk / 2 if two_sided else risk
    found = np.zeros(len(counts))
    if two_sided or true < null:
        found += _tail(_critical(counts, null, share), counts, true)
    if two_sided or true > null:
        found += _tail(_critical(counts, 1 - null, share), counts, 1 - true)
    return found


def _tail(last: _Array, counts: NDArray[np.int64], rate: float) -> _Array:
    return np.asarray(np.where(last < 0, 0.0, bdtr(np.maximum(last, 0), counts, rate)))


def _critical(counts: NDArray[np.int64], rate: float, risk: float) -> _Array:
    """Return the greatest number of hits that is reached from below with at most the risk; -1 for none."""
    last = np.floor(np.nan_to_num(bdtrik(risk, counts, rate), nan=-1.0)) + 1
    for _ in range(3):
        last = np.where(_tail(np.minimum(last, counts), counts, rate) > risk, last - 1, last)
    return np.asarray(np.maximum(last, -1.0))


def _between(count: int, first: float, second: float, risk: float) -> float:
    if feasible(count):
        return exact_power(count, first, second, risk)
    z, middle = normal_quantile(1 - risk / 2), (first + second) / 2
    gap = abs(first - second) - 1 / count
    spread = z * math.sqrt(2 * middle * (1 - middle) / count)
    error = math.sqrt((first * (1 - first) + second * (1 - second)) / count)
    return float(ndtr((gap - spread) / error)) if error else 1.0


def _corrected_size(first: float, second: float, z: float, found: float) -> float:
    """Return the size of Casagrande, Pike and Smith (1978), an approximation to that of the exact test."""
    middle, gap = (first + second) / 2, abs(first - second)
    spread = z * math.sqrt(2 * middle * (1 - middle))
    spread += found * math.sqrt(first * (1 - first) + second * (1 - second))
    return spread**2 / gap**2 / 4 * (1 + math.sqrt(1 + 4 * gap / max(spread, 1e-9) ** 2)) ** 2
