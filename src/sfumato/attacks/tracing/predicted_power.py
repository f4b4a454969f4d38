r"""The power of tracing statistics by theory: exact by convolution at small size, normal at any.

>>> import numpy as np
>>> found = tracing_power("likelihood-ratio", np.full(1000, 0.5), members=100)
>>> found.exact, round(found.power.lower, 2)
(False, 0.8)

*Normal approximation.* For independent attributes, the score's mean differs between members and others by
:math:`\Delta` and its standard deviation is nearly the same, :math:`\sigma`; the power at a false positive
rate :math:`\alpha` is about :math:`\Phi(\Delta/\sigma - \Phi^{-1}(1-\alpha))`. With :math:`v_j = p_j(1-p_j)`
and :math:`s^2` the variance of the noise on a frequency, the squares of :math:`\Delta/\sigma` are

- likelihood ratio: :math:`\sum_j \frac{v_j}{n^2} \big/ \big(\frac{v_j}{n} + s^2\big)`, which is
  :math:`d/n` without noise (Sankararaman and others 2009);
- Homer: :math:`\big(\sum_j 2v_j/n\big)^2 \big/ \sum_j (v_j/n + s^2)`;
- inner product: :math:`\big(\sum_j v_j/n\big)^2 \big/ \sum_j v_j (v_j/n + s^2 + (p_j - 1/2)^2)`.

All is for a threshold that is fixed before the release. One that is set on the scores of others in the same
release does better for Homer's statistic where frequencies are far from a half, as the mean of its scores
varies from release to release.

*Exact.* The score of a random target is a sum of independent terms, one for each attribute, each with a
finite distribution over (target's attribute, count, noise). Their values are rounded down to a grid and
convolved; the sum is then too low by less than a step for each term, which gives an interval. What is left
out (noise beyond 1e-12 of its mass, sums outside of the grid by Chernoff's bound) is added to the interval.
"""

from __future__ import annotations

import math
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp, ndtr, ndtri, xlog1py, xlogy

from sfumato import _check
from sfumato.attacks.tracing.score_weights import (
    IMPOSSIBLE,
    ScoreWeights,
    homer_weights,
    inner_product_weights,
    likelihood_ratio_weights,
)
from sfumato.numerics.distributions.discrete import SymmetricDistribution
from sfumato.numerics.interval import Interval

__all__ = ["PredictedPower", "Statistic", "check_statistic", "frequencies_of", "tracing_power"]

Statistic = Literal["homer", "likelihood-ratio", "inner-product"]
Floats = NDArray[np.float64]

_STATISTICS: Final = ("homer", "likelihood-ratio", "inner-product")
_MIN_BITS: Final = 14
_MAX_BITS: Final = 17
_EXACT: Final = 20_000
_MOST: Final = 500
_OUTSIDE: Final = 1e-10
_TAIL: Final = 1e-12
_ROUND_OFF: Final = 1e-9
_FINEST: Final = 1e-8
"""The least rate that is above all that the convolution leaves out."""


class PredictedPower(NamedTuple):
    """What theory says of a tracing statistic.

    Attributes
    ----------
    false_positive_rate : Interval
        Of the threshold.
    power : Interval
        The chance that a random member scores above it.
    threshold : float
        Of the score; NaN for the normal approximation, whose mean is not computed.
    exact : bool
        Whether the intervals are certain (round-off included), and no approximation.

    Examples
    --------
    >>> import numpy as np
    >>> found = tracing_power("likelihood-ratio", np.full(20, 0.5), members=5, false_positive_rate=0.05)
    >>> found.exact, round(found.power.lower, 2) <= round(found.power.upper, 2)
    (True, True)
    """

    false_positive_rate: Interval
    power: Interval
    threshold: float
    exact: bool


def frequencies_of(values: ArrayLike) -> Floats:
    """Return frequencies strictly between 0 and 1, or refuse them."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array) or not ((array > 0) & (array < 1)).all():
        remedy = "leave out attributes that nobody or everybody has, or smooth: (count + 1) / (people + 2)"
        _check.refuse_type("frequencies", "be strictly between 0 and 1, one an attribute", array, remedy)
    return array


def check_statistic(statistic: str) -> None:
    """Refuse what is no statistic."""
    if statistic not in _STATISTICS:
        remedy = "pass 'likelihood-ratio' where the frequencies are the population's"
        _check.refuse("statistic", f"be one of {', '.join(_STATISTICS)}", statistic, remedy)


def tracing_power(
    statistic: Statistic,
    frequencies: ArrayLike,
    *,
    members: int,
    false_positive_rate: float = 0.01,
    noise: SymmetricDistribution | None = None,
) -> PredictedPower:
    """Return the power of a tracing statistic at a false positive rate, by theory.

    Parameters
    ----------
    statistic : {"homer", "likelihood-ratio", "inner-product"}
        As `Tracing` computes it.
    frequencies : array of shape (attributes,)
        Of the population, strictly between 0 and 1. Attributes are independent.
    members : int
        How many people were summed.
    false_positive_rate : float
        At most this.
    noise : SymmetricDistribution, optional
        On each count, such as ``release.distribution``.

    Returns
    -------
    PredictedPower
        Exact for up to 500 attributes, and up to 20,000 attributes times members, and a false positive rate
        of 1e-8 at least; beyond, the normal approximation.

    Raises
    ------
    ParameterError
        If a parameter breaks its rule.

    References
    ----------
    Sankararaman, Obozinski, Jordan, Halperin (2009), "Genomic privacy and limits of individual detection in
    a pool".

    Examples
    --------
    >>> import numpy as np
    >>> tracing_power("homer", np.full(50_000, 0.3), members=1000).power.lower > 0.99
    True
    """
    check_statistic(statistic)
    values = frequencies_of(frequencies)
    members = _check.integer("members", members, minimum=2, remedy="pass how many people were summed")
    rate = _check.unit_interval("false_positive_rate", false_positive_rate)
    if len(values) <= _MOST and len(values) * members <= _EXACT and rate >= _FINEST:
        return _convolved(statistic, values, members, rate, noise)
    variance = 0.0 if noise is None else noise.variance / members**2
    power = float(ndtr(_effect(statistic, values, members, variance) - ndtri(1 - rate)))
    found = Interval(power, power, tight=False)
    return PredictedPower(Interval(rate, rate, tight=False), found, math.nan, exact=False)


def _effect(statistic: Statistic, p: Floats, members: int, noise: float) -> float:
    """Return the difference of means in standard deviations."""
    v = p * (1 - p)
    published = v / members + noise
    if statistic == "likelihood-ratio":
        return math.sqrt(float((v / members**2 / published).sum()))
    if statistic == "homer":
        return float(2 * (v / members).sum() / math.sqrt(float(published.sum())))
    published = published + (p - 0.5) ** 2
    return float((v / members).sum() / math.sqrt(float((v * published).sum())))


def statistic_weights(
    statistic: Statistic, published: Floats, p: Floats, members: int, noise_variance: float
) -> ScoreWeights:
    """Return the weights of a statistic for published frequencies; the noise is that of counts."""
    if statistic == "homer":
        return homer_weights(published, p)
    if statistic == "inner-product":
        return inner_product_weights(published, p)
    return likelihood_ratio_weights(published, p, members, noise_variance)


class _Terms(NamedTuple):
    """The values of one attribute's term, and their probabilities for others and for members."""

    values: Floats
    outside: Floats
    inside: Floats


def _noise_chances(noise: SymmetricDistribution | None) -> Floats:
    """Return the chances of the noise from the least to the greatest that is looked at."""
    if noise is None:
        return np.ones(1)
    half = np.array([noise.pmf(k).lower for k in range(noise.quantile_above(_TAIL) + 1)])
    return np.concatenate([half[:0:-1], half])


def _terms(statistic: Statistic, p: float, members: int, chances: Floats, variance: float) -> _Terms:
    rows = []
    for y in (0, 1):
        own = p if y else 1 - p
        outside = np.convolve(_binomial(members, p), chances)
        inside = np.convolve(np.pad(_binomial(members - 1, p), (y, 1 - y)), chances)
        published = (np.arange(len(outside)) - len(chances) // 2) / members
        weights = statistic_weights(statistic, published, np.full(len(published), p), members, variance)
        rows.append((weights[y], own * outside, own * inside))
    return _Terms(*(np.concatenate(parts) for parts in zip(*rows, strict=True)))


def _binomial(n: int, p: float) -> Floats:
    k = np.arange(n + 1)
    logs = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + xlogy(k, p) + xlog1py(n - k, -p)
    return np.asarray(np.exp(logs), dtype=np.float64)


def _convolved(
    statistic: Statistic, p: Floats, members: int, rate: float, noise: SymmetricDistribution | None
) -> PredictedPower:
    distinct, times = np.unique(p, return_counts=True)
    chances, variance = _noise_chances(noise), 0.0 if noise is None else noise.variance
    terms = [_terms(statistic, float(one), members, chances, variance) for one in distinct]
    # Where the release excludes the target, nobody is accused; such values would only widen the grid.
    terms = [_Terms(*(part[one.values > IMPOSSIBLE / 2] for part in one)) for one in terms]
    ends = _ends(terms, times)
    places = 1 << min(_MAX_BITS, max(_MIN_BITS, math.ceil(math.log2(400 * len(p)))))
    step = max(ends[1] - ends[0], 1e-300) / (places - 2 * len(p) - 2)
    start = math.floor(ends[0] / step) - len(p) - 1
    false, true = (_tails(terms, times, member, (step, start, places)) for member in (False, True))
    lost = _ROUND_OFF + 4 * _OUTSIDE + (0.0 if noise is None else 2 * _TAIL * len(p))
    # A sum of terms rounded down is below the truth by less than a step for each.
    upper = [np.concatenate([np.ones(len(p)), tail[: -len(p)]]) + lost for tail in (false, true)]
    cut = int(np.argmax(upper[0] <= rate))
    found = [
        Interval(max(0.0, float(tail[cut]) - lost), min(1.0, float(high[cut])))
        for tail, high in zip((false, true), upper, strict=True)
    ]
    return PredictedPower(found[0], found[1], (start + cut) * step, exact=True)


def _tails(
    terms: list[_Terms], times: NDArray[np.int64], member: bool, grid: tuple[float, int, int]
) -> Floats:
    """Return the chance that the sum of terms, rounded down to the grid, is beyond each place of a window.

    Sums outside of the window come back in at its other end; how rarely is known by `_ends`.
    """
    step, start, places = grid
    spectrum = np.ones(places // 2 + 1, dtype=np.complex128)
    for one, n in zip(terms, times, strict=True):
        steps = np.floor(one.values / step).astype(np.int64) % places
        chances = np.bincount(steps, weights=one.inside if member else one.outside, minlength=places)
        own = np.fft.rfft(chances)
        spectrum *= own if n == 1 else own ** int(n)
    sums = np.roll(np.maximum(np.fft.irfft(spectrum, places), 0.0), -(start % places))
    return np.append(np.cumsum(sums[::-1])[::-1][1:], 0.0)


def _ends(terms: list[_Terms], times: NDArray[np.int64]) -> tuple[float, float]:
    """Return two ends that the sum is beyond with a chance below 1e-10 each, by Chernoff's bound."""
    moments = [(one.values, (one.outside, one.inside)) for one in terms]
    variance = sum(int(n) * float((v**2) @ rates[0]) for (v, rates), n in zip(moments, times, strict=True))
    tilts = np.geomspace(0.5, 60, 40) / math.sqrt(max(variance, 1e-300))
    found = []
    for sign in (-1.0, 1.0):
        ends = []
        for member in (0, 1):
            logs = np.zeros(len(tilts))
            for (values, rates), n in zip(moments, times, strict=True):
                logs += int(n) * logsumexp(sign * tilts[:, None] * values, b=rates[member], axis=1)
            ends.append(float(((logs - math.log(_OUTSIDE)) / tilts).min()))
        found.append(sign * max(ends))
    return found[0], found[1]
