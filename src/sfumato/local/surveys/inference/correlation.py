"""Correlations of what was asked with randomized response: of two answers, or of one with a known number."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sfumato import _check
from sfumato.local.surveys.designs.design import Design
from sfumato.local.surveys.estimates.answer_counts import indices
from sfumato.local.surveys.estimates.likeliest_shares import likeliest_shares
from sfumato.numerics.interval import Interval

__all__ = ["RandomizedCorrelation", "correlation"]

_FEWEST: Final = 3
_ALIKE: Final = 1e-12


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RandomizedCorrelation:
    """An estimated correlation of two things in the population, with its error.

    Parameters
    ----------
    correlation : float
        The raw estimate: it may lie outside [-1, 1]; NaN where an estimated variance is not above 0.
    maximum_likelihood : float
        Of two randomized answers, that of their likeliest joint shares; else the raw one within [-1, 1].
    stddev : float
        The standard error, of sampling and randomization together, linearised.
    respondents : int

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.local.surveys import TwoCoins, correlation
    >>> coins, rng = TwoCoins(), np.random.default_rng(0)
    >>> one = rng.random(20000) < 0.4
    >>> two = np.where(rng.random(20000) < 0.5, one, rng.random(20000) < 0.4)
    >>> said = [coins.respond(truth, rng=rng) for truth in (one, two)]
    >>> found: RandomizedCorrelation = correlation(*said, designs=(coins, coins))
    >>> lower, upper, _ = found.interval()
    >>> bool(lower < 0.5 < upper)
    True
    """

    correlation: float
    maximum_likelihood: float
    stddev: float
    respondents: int
    _moments: NDArray[np.float64] = field(repr=False)

    def interval(self, level: float = 0.95) -> Interval:
        r"""Return an interval for the correlation in the population.

        Parameters
        ----------
        level : float
            Wanted coverage, strictly between 0 and 1, which it has in the limit of many respondents. With few
            it covers less if a number has heavy tails: see the notes.

        Returns
        -------
        Interval
            Within [-1, 1]; all of it where the answers do not show that both things vary.

        Notes
        -----
        The values :math:`\rho` at which :math:`C - \rho\sqrt{V_1V_2}` is no more than the level's number of
        standard errors from 0, with C the estimated covariance and V the variances (Fieller 1954). That
        difference is nearly normal where the ratio is not yet. A number with heavy tails, such as an income,
        needs many respondents, as in every correlation: of 200, 95 % intervals with a lognormal one held the
        truth in 93 % where the correlation was .18, and in 85 % where it was .40; errors by the jackknife
        held it in 93 and 86 %. Take its logarithm.
        """
        limit = float(ndtri((1 + _check.unit_interval("level", level)) / 2)) ** 2
        covariance, scale, a, b, c = map(float, self._moments)
        if not scale > 0:
            return Interval(-1.0, 1.0)
        # (covariance - rho scale)^2 <= limit (a - 2 rho b + rho^2 c), as second + 2 first rho + none <= 0.
        second = scale**2 - limit * c
        first, none = limit * b - covariance * scale, covariance**2 - limit * a
        root = first**2 - second * none
        if second <= 0 or root < 0:
            return Interval(-1.0, 1.0)
        ends = [(-first + sign * math.sqrt(root)) / second for sign in (-1, 1)]
        return Interval(max(-1.0, min(1.0, ends[0])), min(1.0, max(-1.0, ends[1])))


def correlation(
    first: Any, second: Any, *, designs: tuple[Design | None, Design | None]
) -> RandomizedCorrelation:
    r"""Estimate the correlation of two things, of which at least one was asked with randomized response.

    Parameters
    ----------
    first, second : array, list or column of a frame
        Both answers of each respondent, in one order.
    designs : tuple of two designs
        How each was asked: designs whose categories are numbers, or False and True (for two of those the
        correlation is phi; of one with a number, the point-biserial one); None for a number that was asked
        directly.

    Returns
    -------
    RandomizedCorrelation

    Raises
    ------
    ParameterError
        If answers are missing or are none of the design's; no value is shown.

    Notes
    -----
    Each answer has weights :math:`w` and :math:`v` whose expectations given the truth z are z and
    :math:`z^2`. The devices are used independently of one another, so the covariance of the two w is that of
    the truths, while their variance is not: that is :math:`E v - (E w)^2`. An ordinary correlation of the
    answers is nearer to 0.

    Guarantee: none beyond the answers' own. The epsilons of one respondent's two answers add up; a number
    that was asked directly is not protected.

    References
    ----------
    Fieller (1954), "Some problems in interval estimation"; Fox, Tracy (1984), "Measuring associations with
    randomized response".

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.local.surveys import ForcedResponse
    >>> die, rng = ForcedResponse(yes="1/6", no="1/6"), np.random.default_rng(2)
    >>> true = rng.random(5000) < 0.5
    >>> income = rng.normal(size=5000) - true
    >>> found = correlation(die.respond(true, rng=rng), income, designs=(die, None))
    >>> lower, upper, _ = found.interval()
    >>> bool(lower < -0.5 / np.sqrt(1.25) < upper)
    True
    """
    asked: object = designs
    if (
        not isinstance(asked, tuple | list)
        or len(asked) != 2
        or not any(isinstance(d, Design) for d in asked)
    ):
        remedy = "pass (design, None) if the second was asked directly"
        _check.refuse_type("designs", "be a pair, of how each was asked", asked, remedy)
    parts = [_weighted("first", first, designs[0]), _weighted("second", second, designs[1])]
    (one, one_square), (two, two_square) = parts
    count = len(one)
    if count != len(two):
        _check.refuse("second", "have an answer for each of first", len(two), "leave nobody out")
    if count < _FEWEST:
        return RandomizedCorrelation(
            correlation=math.nan,
            maximum_likelihood=math.nan,
            stddev=math.nan,
            respondents=count,
            _moments=np.zeros(5),
        )
    centered = [one - one.mean(), two - two.mean()]
    product = centered[0] * centered[1]
    covariance = float(product.mean())
    # The influence of each respondent on the variance of a truth: (v - 2 w mean) less its own mean.
    influences = [
        square - 2 * weight.mean() * weight for weight, square in ((one, one_square), (two, two_square))
    ]
    variances = [
        float(square.mean() - weight.mean() ** 2) for weight, square in ((one, one_square), (two, two_square))
    ]
    positive = min(variances) > 0
    scale = math.sqrt(variances[0] * variances[1]) if positive else 0.0
    raw, error, moments = math.nan, math.nan, np.zeros(5)
    if positive:
        halves = [part / variance for part, variance in zip(influences, variances, strict=True)]
        change = scale / 2 * (halves[0] + halves[1])
        errors = np.cov(np.vstack([product, change])) / count
        raw = covariance / scale
        error = math.sqrt(max(0.0, errors[0, 0] - 2 * raw * errors[0, 1] + raw**2 * errors[1, 1])) / scale
        moments = np.array([covariance, scale, errors[0, 0], errors[0, 1], errors[1, 1]])
    return RandomizedCorrelation(
        correlation=raw,
        maximum_likelihood=_likeliest(first, second, designs, raw),
        stddev=error,
        respondents=count,
        _moments=moments,
    )


def _weighted(
    name: str, given: Any, design: Design | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what has the truth, and its square, as expectation."""
    if design is None:
        found = np.asarray(given)
        if (
            found.ndim != 1
            or found.dtype.kind not in "buif"
            or not np.isfinite(found.astype(np.float64)).all()
        ):
            rule = "be finite numbers where there is no design"
            _check.refuse_type(name, rule, given, "leave out respondents without one")
        number = _standardized(found.astype(np.float64))
        return number, number**2
    said, matrix = indices(name, given, design.answers), _matrix(design)
    inverse, truths = np.linalg.pinv(matrix), _truths(design)
    return (inverse @ truths)[said], (inverse @ truths**2)[said]


def _standardized(number: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers of mean 0 and deviation 1, so that no square overflows; all 0 where they are alike."""
    largest = float(np.abs(number).max(initial=0.0))
    shared = number / largest if largest > 0 else number
    centered = shared - (shared.mean() if len(shared) else 0.0)
    width = float(np.sqrt((centered**2).mean())) if len(shared) else 0.0
    return centered / width if width > _ALIKE else np.zeros(len(number))


def _likeliest(first: Any, second: Any, designs: tuple[Design | None, Design | None], raw: float) -> float:
    """Return the correlation of the likeliest joint shares; for a number, the raw one within [-1, 1]."""
    one, two = designs
    if one is None or two is None:
        return min(1.0, max(-1.0, raw)) if np.isfinite(raw) else math.nan
    table = np.zeros((len(one.answers), len(two.answers)))
    np.add.at(table, (indices("first", first, one.answers), indices("second", second, two.answers)), 1)
    shares = likeliest_shares([table.ravel()], [np.kron(_matrix(one), _matrix(two))])
    joint = shares.reshape(len(one.categories), len(two.categories))
    rows, columns = _truths(one), _truths(two)
    rows = rows - joint.sum(axis=1) @ rows
    columns = columns - joint.sum(axis=0) @ columns
    variances = float(joint.sum(axis=1) @ rows**2) * float(joint.sum(axis=0) @ columns**2)
    return float(rows @ joint @ columns) / math.sqrt(variances) if variances > 0 else math.nan


def _matrix(design: Design) -> NDArray[np.float64]:
    return np.array([[float(mass) for mass in row] for row in design.transition])


def _truths(design: Design) -> NDArray[np.float64]:
    if not all(isinstance(value, bool | int | float) for value in design.categories):
        remedy = "name its categories by numbers, such as 0, 1, 2"
        _check.refuse_state("designs", "have numbers as categories", "they are no numbers", remedy)
    return np.array([float(value) for value in design.categories if isinstance(value, bool | int | float)])
