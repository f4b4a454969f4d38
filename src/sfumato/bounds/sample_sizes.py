"""How many rows, or which epsilon, an error needs: exact, without simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, final

from sfumato import _check
from sfumato.bounds.error_models import EpsilonErrorModel, ErrorModel

__all__ = ["Tradeoff", "epsilon_for", "free_rows", "sample_size", "tradeoff_table"]

_MOST: Final = 1 << 50
_EPSILONS: Final = (2.0**-20, 64.0)
_REMEDY: Final = "pass NoisyCounts(...), NoisyMean(...) or an object with that method"


def sample_size(mechanism: ErrorModel, *, error: float, confidence: float = 0.95) -> int:
    """Return the smallest number of rows at which the noise's error is at most a target.

    Parameters
    ----------
    mechanism : ErrorModel
        `NoisyCounts`, `NoisyMean`, `NoisyQuantile`, or any object with a method ``error(rows, confidence)``.
    error : float
        The target, in the unit of the answers.
    confidence : float
        Strictly between 0 and 1.

    Returns
    -------
    int

    Raises
    ------
    ParameterError
        If no number of rows up to 2**50 has so little error.

    Notes
    -----
    Guarantee: exact for the noise of this room; for `NoisyQuantile`, for the worst data. The error of a model
    of your own must not rise with rows; then the result is the smallest. The error at it is what the model
    says in any case.

    Examples
    --------
    >>> from sfumato.bounds import NoisyCounts, NoisyMean
    >>> sample_size(NoisyCounts(epsilon=0.5, entries=100), error=0.01)
    1500
    >>> sample_size(NoisyMean(bounds=(0, 1), epsilon=1.0), error=0.01) < 310
    True
    """
    _check_model("error", mechanism)
    error = _check.positive("error", error)
    return _first(lambda rows: mechanism.error(rows, confidence) <= error, "error", error)


def epsilon_for(mechanism: EpsilonErrorModel, *, rows: int, error: float, confidence: float = 0.95) -> float:
    """Return the smallest epsilon at which the noise's error is at most a target.

    Parameters
    ----------
    mechanism : EpsilonErrorModel
        `NoisyCounts`, `NoisyMean` or `NoisyQuantile` of any epsilon, which is replaced, or an object of that
        Protocol.
    rows : int
    error : float
        The target, in the unit of the answers.
    confidence : float
        Strictly between 0 and 1.

    Returns
    -------
    float
        To one part in a million above the smallest; from 2**-20 to 64. The error at it meets the target.

    Raises
    ------
    ParameterError
        If no epsilon up to 64 meets it.

    Examples
    --------
    >>> from sfumato.bounds import NoisyCounts
    >>> found = epsilon_for(NoisyCounts(epsilon=1.0), rows=1000, error=0.01)
    >>> round(found, 3), NoisyCounts(epsilon=found).error(1000, 0.95)
    (0.284, 0.01)
    """
    _check_model("with_epsilon", mechanism)
    error = _check.positive("error", error)
    lower, upper = _EPSILONS
    if mechanism.with_epsilon(upper).error(rows, confidence) > error:
        _check.refuse("error", f"be reached by an epsilon of at most {upper:g}", error, "pass more rows")
    if mechanism.with_epsilon(lower).error(rows, confidence) <= error:
        return lower
    while upper > lower * (1 + 1e-6):
        middle = math.sqrt(lower * upper)
        if mechanism.with_epsilon(middle).error(rows, confidence) <= error:
            upper = middle
        else:
            lower = middle
    return upper


def free_rows(mechanism: EpsilonErrorModel, *, population_stddev: float, slack: float = 0.01) -> int:
    r"""Return from how many rows on privacy costs almost nothing beside the sampling error.

    Parameters
    ----------
    mechanism : EpsilonErrorModel
        `NoisyCounts`, `NoisyMean`, `NoisyQuantile`, or an object of that Protocol.
    population_stddev : float
        Of one row's value; 0.5 is the greatest for a proportion. For the ranks of a quantile q it is the
        root of q (1 - q).
    slack : float
        How much of itself the standard error may grow.

    Returns
    -------
    int

    Raises
    ------
    ParameterError
        If no number of rows up to 2**50 does.

    Notes
    -----
    The standard error is :math:`\sqrt{s^2/n + \sigma_n^2}` for independent rows and independent noise of
    deviation :math:`\sigma_n`, exactly; the smallest n at which it is at most :math:`(1 + slack) s/\sqrt n`.
    For noise that depends on the rows it is at most :math:`s/\sqrt n + \sigma_n`, which takes its place.

    Examples
    --------
    >>> from sfumato.bounds import NoisyCounts
    >>> free_rows(NoisyCounts(epsilon=0.5), population_stddev=0.5, slack=0.01)
    1560
    """
    _check_model("stddev", mechanism)
    deviation = _check.positive("population_stddev", population_stddev)
    slack = _check.positive("slack", slack)
    # By how much the noise may be above the deviation: variances add up, or else standard errors.
    room = math.sqrt(slack) * math.sqrt(2 + slack) if _independent(mechanism) else slack
    return _first(lambda rows: math.sqrt(rows) * (mechanism.stddev(rows) / deviation) <= room, "slack", slack)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Tradeoff:
    """What a number of rows and an epsilon give together.

    Parameters
    ----------
    rows : int
    epsilon : float
    error : float
        The noise's error at the confidence that was asked, rounded up.
    noise : float
        The noise's standard deviation.
    sampling : float
        The sampling error's standard deviation.
    independent : bool
        Whether the noise is independent of the rows.

    Examples
    --------
    >>> Tradeoff(rows=100, epsilon=1.0, error=0.03, noise=0.03, sampling=0.04).inflation
    1.25
    """

    rows: int
    epsilon: float
    error: float
    noise: float
    sampling: float
    independent: bool = True

    @property
    def inflation(self) -> float:
        """The standard error with noise over that without; at most this where they are not independent."""
        if not self.sampling:
            return math.inf
        share = self.noise / self.sampling
        return math.hypot(share, 1.0) if self.independent else 1.0 + share


def tradeoff_table(
    mechanism: EpsilonErrorModel,
    *,
    rows: Iterable[int],
    epsilons: Iterable[float],
    population_stddev: float,
    confidence: float = 0.95,
) -> tuple[Tradeoff, ...]:
    """Return the exact error over a grid of rows and epsilons, beside the sampling error.

    Parameters
    ----------
    mechanism : EpsilonErrorModel
        `NoisyCounts`, `NoisyMean` or `NoisyQuantile` of any epsilon, or an object of that Protocol.
    rows : iterable of int
    epsilons : iterable of float
    population_stddev : float
        Of one row's value; 0.5 is the greatest for a proportion. For the ranks of a quantile q it is the
        root of q (1 - q).
    confidence : float
        Strictly between 0 and 1.

    Returns
    -------
    tuple of Tradeoff
        Row by row of the grid: for each number of rows all epsilons.

    Examples
    --------
    >>> from sfumato.bounds import NoisyCounts
    >>> grid = tradeoff_table(
    ...     NoisyCounts(epsilon=1.0), rows=[100, 10_000], epsilons=[0.5], population_stddev=0.5
    ... )
    >>> [round(cell.inflation, 3) for cell in grid]
    [1.146, 1.002]
    """
    _check_model("with_epsilon", mechanism)
    deviation = _check.positive("population_stddev", population_stddev)
    counts = [_check.integer("rows", count, minimum=1) for count in rows]
    models = [(_check.positive("epsilons", epsilon), mechanism.with_epsilon(epsilon)) for epsilon in epsilons]
    return tuple(
        Tradeoff(
            rows=count,
            epsilon=epsilon,
            error=one.error(count, confidence),
            noise=one.stddev(count),
            sampling=deviation / math.sqrt(count),
            independent=_independent(one),
        )
        for count in counts
        for epsilon, one in models
    )


def _first(enough: Callable[[int], bool], name: str, value: float) -> int:
    """Return the first number of rows that is enough, where more never is less."""
    outside, inside = 0, 1
    while not enough(inside):
        outside, inside = inside, 2 * inside
        if inside > _MOST:
            _check.refuse(name, "be reached by at most 2**50 rows", value, "pass a larger one")
    while inside - outside > 1:
        middle = (inside + outside) // 2
        if enough(middle):
            inside = middle
        else:
            outside = middle
    return inside


def _independent(mechanism: object) -> bool:
    """Return whether a model's noise is independent of the rows."""
    return bool(getattr(mechanism, "independent", True))


def _check_model(method: str, mechanism: object) -> None:
    """Refuse what does not know its error."""
    if not callable(getattr(mechanism, method, None)):
        _check.refuse_type("mechanism", f"have a method {method}", mechanism, _REMEDY)
