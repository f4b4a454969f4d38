"""The power of tests on randomized answers, and how many respondents a wanted power needs."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrik, chdtri, chndtr, ndtr

from sfumato import _check
from sfumato.local.surveys.designs.binary import BinaryDesign
from sfumato.local.surveys.estimates.intervals import normal_quantile
from sfumato.local.surveys.inference.fisher_exact import exact_power, feasible
from sfumato.local.surveys.inference.sample_size import MAX_RESPONDENTS, Plan, smallest_count

__all__ = ["chi_square_power", "power", "power_between", "respondents_between", "respondents_to_tell"]

_Array: TypeAlias = NDArray[np.float64]


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
        What is asked by.
    null, prevalence : float
        What is tested, and what is true; from 0 to 1, different.
    respondents : int
        At least 1.
    false_positive_rate : float
        Of the test: `goodness_of_fit` for two answers, which errs at most so often.
    two_sided : bool
        False puts all of it on the side of ``prevalence``.

    Returns
    -------
    float
        Exact: a sum of binomial probabilities.

    Examples
    --------
    >>> from sfumato.local.surveys import TwoCoins
    >>> 0.8 < power(TwoCoins(), null=0.1, prevalence=0.2, respondents=800) < 0.95
    True
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
    """Return how many respondents distinguish one prevalence from another with a wanted power.

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

    Examples
    --------
    >>> from sfumato.local.surveys import TwoCoins
    >>> plan = respondents_to_tell(TwoCoins(), null=0.1, prevalence=0.2)
    >>> plan.achieved >= 0.8, 500 < plan.respondents < 800
    (True, True)
    """
    wanted = _check.unit_interval("power", power)
    risk = _check.unit_interval("false_positive_rate", false_positive_rate)
    first, second = _rates(design, null, prevalence)
    z = normal_quantile(1 - risk / (2 if two_sided else 1)), normal_quantile(wanted)
    deviation = z[0] * math.sqrt(first * (1 - first)) + z[1] * math.sqrt(second * (1 - second))
    guess = _affordable("prevalence", (deviation / (first - second)) ** 2)
    width = math.ceil(max(20, 3 * math.sqrt(guess)))
    middle = round(guess)
    while True:
        counts = np.arange(max(1, middle - width), middle + width + 1)
        powers = _binomial_power(counts, first, second, risk, two_sided=two_sided)
        missed = np.flatnonzero(powers < wanted)
        index = int(missed[-1]) + 1 if len(missed) else 0
        if index + width >= len(counts) and index:
            middle += width
        elif index or counts[0] == 1:
            return Plan(respondents=int(counts[index]), achieved=float(powers[index]), exact=True)
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
    """Return the chance that `two_sample` distinguishes two groups with different prevalences.

    Parameters
    ----------
    design : BinaryDesign
        What both groups are asked by.
    first, second : float
        The prevalences of the two groups.
    respondents : int
        In each of the groups.
    false_positive_rate : float
        Of the test, strictly between 0 and 1.

    Returns
    -------
    Plan
        Exact, that of Fisher's test, up to 2,000 respondents in each group; beyond that a normal
        approximation with a correction for continuity.

    Examples
    --------
    >>> from sfumato.local.surveys import TwoCoins
    >>> plan = power_between(TwoCoins(), first=0.1, second=0.3, respondents=300)
    >>> plan.exact, 0.5 < plan.achieved < 0.9
    (True, True)
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
    """Return how many respondents in each of two groups distinguish their prevalences.

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

    Examples
    --------
    >>> from sfumato.local.surveys import TwoCoins
    >>> plan = respondents_between(TwoCoins(), first=0.1, second=0.4)
    >>> plan.exact, plan.achieved >= 0.8
    (True, True)
    """
    wanted = _check.unit_interval("power", power)
    risk = _check.unit_interval("false_positive_rate", false_positive_rate)
    one, two = _rates(design, first, second)
    guess = _corrected_size(one, two, normal_quantile(1 - risk / 2), normal_quantile(wanted))
    start = int(_affordable("second", guess))
    found = smallest_count(lambda count: _between(count, one, two, risk) >= wanted, start)
    return Plan(respondents=found, achieved=_between(found, one, two, risk), exact=feasible(found))


def chi_square_power(
    null: Any, true: Any, *, respondents: int, degrees: int, false_positive_rate: float = 0.05
) -> float:
    r"""Return the approximate power of a chi-square test on answers.

    Parameters
    ----------
    null, true : array
        Probabilities of the answers, or of pairs of them, under the null hypothesis and in truth; such as
        ``shares @ transition``, or ``transition1.T @ joint @ transition2``.
    respondents : int
        At least 1.
    degrees : int
        Degrees of freedom of the test.
    false_positive_rate : float
        Of the test, strictly between 0 and 1.

    Returns
    -------
    float
        By the noncentral chi-square distribution with :math:`n \sum (\lambda - \lambda_0)^2/\lambda_0`: the
        limit for truths near the null hypothesis.

    Examples
    --------
    >>> even, other = [1 / 3, 1 / 3, 1 / 3], [0.4, 0.3, 0.3]
    >>> few, many = (chi_square_power(even, other, respondents=n, degrees=2) for n in (100, 1000))
    >>> few < 0.5 < 0.95 < many
    True
    """
    before, after = np.asarray(null, float), np.asarray(true, float)
    far = _check.integer("respondents", respondents, minimum=1) * float(
        ((after - before) ** 2 / before).sum()
    )
    risk = _check.unit_interval("false_positive_rate", false_positive_rate)
    return float(1 - chndtr(chdtri(degrees, risk), degrees, far))


def _rates(design: BinaryDesign, one: float, two: float) -> tuple[float, float]:
    _check.instance("design", design, BinaryDesign, "chi_square_power plans for more answers")
    rates = design.yes_rate(one), design.yes_rate(two)
    if rates[0] == rates[1]:
        _check.refuse("prevalence", "differ from the other one", two, "state two different ones")
    return rates


def _affordable(name: str, guess: float) -> float:
    if guess > MAX_RESPONDENTS:
        found = f"about {guess:.3g} are needed"
        remedy = "state a larger difference, or take a design with more truth"
        _check.refuse_state(name, "be distinguished by at most 10**9 respondents", found, remedy)
    return max(1.0, guess)


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
    """Return the largest number of hits that is reached from below with at most the risk; -1 for none."""
    last = np.floor(np.nan_to_num(bdtrik(risk, counts, rate), nan=-1.0)) + 1
    for _ in range(3):
        last = np.where(_tail(np.minimum(last, counts), counts, rate) > risk, last - 1, last)
    return np.asarray(np.maximum(last, -1.0))


def _between(count: int, first: float, second: float, risk: float) -> float:
    if feasible(count):
        return exact_power(count, first, second, risk)
    z, middle = normal_quantile(1 - risk / 2), (first + second) / 2
    gap = abs(first - second) - 1 / count
    deviation = z * math.sqrt(2 * middle * (1 - middle) / count)
    error = math.sqrt((first * (1 - first) + second * (1 - second)) / count)
    return float(ndtr((gap - deviation) / error)) if error else 1.0


def _corrected_size(first: float, second: float, z: float, found: float) -> float:
    """Return the size of Casagrande, Pike and Smith (1978), an approximation to that of the exact test."""
    middle, gap = (first + second) / 2, abs(first - second)
    deviation = z * math.sqrt(2 * middle * (1 - middle))
    deviation += found * math.sqrt(first * (1 - first) + second * (1 - second))
    return deviation**2 / gap**2 / 4 * (1 + math.sqrt(1 + 4 * gap / max(deviation, 1e-9) ** 2)) ** 2
