"""The Wasserstein distance of order infinity between distributions of one number, by quantile gaps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any, final

from sfumato import _check
from sfumato.pufferfish.models.exact import exact_number, exact_probabilities

__all__ = ["NumberDistribution", "ProbabilityBox", "wasserstein_infinity"]


@final
@dataclass(frozen=True, slots=True)
class NumberDistribution:
    """An exact distribution of one number on finitely many points.

    Parameters
    ----------
    values : iterable of numbers
    probabilities : iterable of numbers
        One for each value; a float stands for its shortest decimal, so that 0.1 is a tenth.

    Raises
    ------
    ParameterError
        If they are no distribution, or samples are passed instead.

    Examples
    --------
    >>> NumberDistribution([2, 0, 2], [0.25, 0.5, 0.25]).values
    (Fraction(0, 1), Fraction(2, 1))
    """

    values: Any
    probabilities: Any

    def __post_init__(self) -> None:
        values = [exact_number("values", value) for value in self.values]
        weights = exact_probabilities("probabilities", self.probabilities)
        if len(values) != len(weights):
            remedy = "pass a probability for each value; samples prove no bound on the distance"
            _check.refuse_state("probabilities", "be as many as the values", "they are not", remedy)
        merged: dict[Fraction, Fraction] = {}
        for value, weight in zip(values, weights, strict=True):
            if weight:
                merged[value] = merged.get(value, Fraction(0)) + weight
        object.__setattr__(self, "values", tuple(sorted(merged)))
        object.__setattr__(self, "probabilities", tuple(merged[value] for value in self.values))

    @classmethod
    def of(cls, weights: Mapping[Fraction, Fraction]) -> NumberDistribution:
        """Return the distribution of unnormalised exact weights.

        Parameters
        ----------
        weights : mapping of Fraction to Fraction

        Returns
        -------
        NumberDistribution
        """
        total = sum(weights.values())
        return cls(list(weights), [weight / total for weight in weights.values()])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProbabilityBox:
    """All distributions on some points whose cumulative probabilities lie between bounds.

    Parameters
    ----------
    values : iterable of numbers
        The points, in ascending order; nothing lies elsewhere.
    lower, upper : iterable of numbers
        Bounds on ``P(X <= value)`` for each point; the last of each is one.

    Raises
    ------
    ParameterError
        If no distribution lies between them.

    Examples
    --------
    >>> box = ProbabilityBox(values=[0, 1, 2], lower=[0.2, 0.5, 1], upper=[0.4, 0.9, 1])
    >>> wasserstein_infinity(box, NumberDistribution([0, 1, 2], [0.3, 0.4, 0.3]))
    Fraction(1, 1)
    """

    values: Any
    lower: Any
    upper: Any

    def __post_init__(self) -> None:
        columns = {name: tuple(exact_number(name, x) for x in getattr(self, name)) for name in self.__slots__}
        values, lower, upper = columns["values"], columns["lower"], columns["upper"]
        sizes = {len(column) for column in columns.values()}
        ascending = all(list(column) == sorted(column) for column in columns.values())
        if len(sizes) > 1 or not values or not ascending or len(set(values)) < len(values):
            _check.refuse_state(
                "values, lower and upper",
                "be three ascending lists of one length",
                "they are not",
                "sort them",
            )
        if any(low > high for low, high in zip(lower, upper, strict=True)) or min(lower) < 0:
            _check.refuse_state("lower", "be from 0 to upper", "it is not", "swap or widen the bounds")
        if lower[-1] != 1 or upper[-1] != 1:
            _check.refuse_state("lower and upper", "end with 1", "they do not", "add the largest value")
        for name, column in columns.items():
            object.__setattr__(self, name, column)


def wasserstein_infinity(
    first: NumberDistribution | ProbabilityBox, second: NumberDistribution | ProbabilityBox
) -> Fraction:
    """Return the least distance within which one distribution's mass can be moved to be the other.

    Parameters
    ----------
    first, second : NumberDistribution or ProbabilityBox

    Returns
    -------
    Fraction
        Exact for distributions; for boxes the largest over what they hold, or more.

    Raises
    ------
    ParameterError
        If something else is passed, such as samples: the distance of samples bounds nothing, for one unseen
        value may lie anywhere.

    Notes
    -----
    In one dimension it is the largest gap between quantiles at one level, and quantiles change only at the
    finitely many cumulative probabilities; all of it is rational arithmetic.

    Examples
    --------
    >>> wasserstein_infinity(NumberDistribution([0, 4], [0.5, 0.5]), NumberDistribution([1, 4], [0.25, 0.75]))
    Fraction(4, 1)
    """
    low_first, high_first = _cumulative("first", first)
    low_second, high_second = _cumulative("second", second)
    values_first, values_second = first.values, second.values
    return max(
        # The lower bound of the cumulative probability gives the largest quantile, the upper the smallest.
        _largest_gap(values_first, low_first, values_second, high_second),
        _largest_gap(values_second, low_second, values_first, high_first),
    )


def _cumulative(name: str, given: object) -> tuple[list[Fraction], list[Fraction]]:
    if isinstance(given, NumberDistribution):
        sums = list(accumulate(given.probabilities))
        return sums, sums
    if not isinstance(given, ProbabilityBox):
        remedy = "pass exact probabilities, or bounds on them; samples prove no bound on the distance"
        _check.refuse_type(name, "be a NumberDistribution or a ProbabilityBox", given, remedy)
    return list(given.lower), list(given.upper)


def _largest_gap(
    high_values: Iterable[Fraction], high: list[Fraction], low_values: Iterable[Fraction], low: list[Fraction]
) -> Fraction:
    """Return the largest of: the quantile by ``high`` less the quantile by ``low``, over levels in (0, 1]."""
    above, below = list(high_values), list(low_values)
    i = j = 0
    gap = reached = Fraction(0)
    while i < len(above) and j < len(below):
        # Levels from the last one up to this one have these two quantiles.
        level = min(high[i], low[j])
        if level > reached:
            gap = max(gap, above[i] - below[j])
        reached = level
        i, j = i + (high[i] <= level), j + (low[j] <= level)
    return gap
