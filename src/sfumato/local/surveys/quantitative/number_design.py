"""What every design for a number is: public bounds, exact chances, and weights of an unbiased mean."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, NoReturn, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.surveys.designs.design import Design
from sfumato.local.surveys.designs.privacy_loss import Transition, loss_of
from sfumato.local.surveys.designs.probabilities import Chance, chance, plain
from sfumato.local.surveys.quantitative.number_estimate import NumberEstimate
from sfumato.privacy.loss import PrivacyLoss

__all__ = [
    "MAX_NUMBERS",
    "NumberDesign",
    "NumberDistribution",
    "check_answers",
    "check_bounds",
    "distribution",
    "matrix_of",
    "pair_rows",
    "parts",
]

NumberDistribution: TypeAlias = Mapping[int, Chance] | Sequence[tuple[int, Chance]]
"""Whole numbers with their chances, which add up to 1."""

MAX_NUMBERS: Final = 101
"""The largest number of numbers that may be true, and of those that a device draws."""

_MAX_ANSWERS: Final = 256
_MAX_SIZE: Final = 10**9


class NumberDesign(Design):
    r"""A design for a question whose answer is a whole number between public bounds.

    Notes
    -----
    Each answer :math:`a` has a weight :math:`w(a)` whose expectation, given the respondent's number, is that
    number. So the average of the weights is an unbiased estimate of the mean, whatever the distribution.

    Examples
    --------
    >>> from sfumato.local.surveys import UnrelatedNumber
    >>> design: NumberDesign = UnrelatedNumber(
    ...     lower=0, upper=3, truth="1/2", other={0: "1/4", 1: "1/4", 2: "1/4", 3: "1/4"}
    ... )
    >>> design.weights.tolist(), design.odds
    ([-1.5, 0.5, 2.5, 4.5], Fraction(5, 1))
    """

    __slots__ = ()

    lower: int
    upper: int

    @property
    @abstractmethod
    def weights(self) -> NDArray[np.float64]:
        """The weight of each answer in the unbiased estimate of the mean."""

    @abstractmethod
    def _pairs(self) -> Iterator[Transition]:
        """Yield pairs of rows, such that each pair of truths has the same ratios as one of them."""

    @property
    def categories(self) -> tuple[Hashable, ...]:
        """The whole numbers between the bounds."""
        return tuple(range(self.lower, self.upper + 1))

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one respondent's answer: exact, under replace-one."""
        return loss_of(*self._pairs())

    @property
    def slope(self) -> Fraction:
        """Refused: the answers of such a design have none in common."""
        self._without_slope()

    @property
    def floor(self) -> tuple[Fraction, ...]:
        """Refused: the answers of such a design have none."""
        self._without_slope()

    def _without_slope(self) -> NoReturn:
        remedy = "plan by respondents_for_mean, and estimate by estimate(...)"
        _check.refuse_state("design", "have one slope for all answers", "it asks for a number", remedy)

    def possible(self, answer: int) -> tuple[int, ...]:
        """Return which numbers an answer leaves possible.

        Parameters
        ----------
        answer : int
            One of the design's answers.

        Returns
        -------
        tuple of int
            All numbers between the bounds, where the epsilon is finite.
        """
        if answer not in self.answers:
            _check.refuse("answer", "be one of the design's answers", answer, "design.answers lists them")
        index = self.answers.index(answer)
        numbers = range(self.lower, self.upper + 1)
        return tuple(number for number, row in zip(numbers, self.transition, strict=True) if row[index])

    def estimate(self, answers: Any) -> NumberEstimate:
        """Return the estimated mean and distribution of the numbers.

        Parameters
        ----------
        answers : array, list, column of a frame, or mapping
            As in `counts`.

        Returns
        -------
        NumberEstimate
            With errors and intervals.
        """
        return NumberEstimate(design=self, counts=self.counts(answers))

    def variance(self, respondents: int, distribution: Sequence[float]) -> float:
        """Return the variance of the estimated mean, of sampling and randomization together.

        Parameters
        ----------
        respondents : int
            At least 1.
        distribution : sequence of float
            The share of each number in the population, from ``lower`` to ``upper``; they add up to 1.

        Returns
        -------
        float
            Its root is the standard error of the mean.
        """
        count = _check.integer("respondents", respondents, minimum=1)
        rates = self._shares(distribution) @ matrix_of(self.transition)
        # Around the mean: bounds far from zero leave nothing of a difference of squares.
        middle = (self.lower + self.upper) / 2
        apart = self.weights - middle
        return float(rates @ (apart - rates @ apart) ** 2) / count

    def _shares(self, distribution: Sequence[float]) -> NDArray[np.float64]:
        """Return checked shares of the numbers."""
        try:
            shares = np.asarray(distribution, dtype=np.float64)
        except (TypeError, ValueError):
            shares = np.empty(0)
        right = shares.shape == (self.upper - self.lower + 1,) and bool((shares >= 0).all())
        # Not "above": no comparison with NaN is true.
        if not (right and abs(float(shares.sum()) - 1) <= 1e-9):
            rule = "be a share for each number, which add up to 1"
            _check.refuse_type("distribution", rule, distribution, "pass one from lower to upper")
        return shares

    @property
    def worst_variance(self) -> float:
        r"""The largest variance of one answer's weight, over all distributions of the numbers.

        Notes
        -----
        With :math:`m(v)` the second moment of the weight given the number :math:`v`, it is the maximum of
        :math:`\sum_v \theta_v m(v) - (\sum_v \theta_v v)^2`. For a given mean the first part is largest on
        at most two numbers (Carathéodory), so that pairs of numbers suffice; on each pair it is a parabola.
        """
        numbers = np.arange(self.lower, self.upper + 1, dtype=np.float64)
        # The variance does not change with the place of zero, and near the middle little cancels.
        middle = (self.lower + self.upper) / 2
        moments = matrix_of(self.transition) @ (self.weights - middle) ** 2
        low, high = (numbers - middle)[:, None], (numbers - middle)[None, :]
        gap, rise = high - low, moments[None, :] - moments[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(gap != 0, (rise / gap - 2 * low) / (2 * gap), 0.0)
        part = np.clip(part, 0.0, 1.0)
        return float((moments[:, None] + part * rise - (low + part * gap) ** 2).max())

    @property
    def weight_bounds(self) -> tuple[float, float]:
        """The smallest and the largest weight of an answer."""
        return float(self.weights.min()), float(self.weights.max())


def check_bounds(lower: object, upper: object) -> None:
    """Refuse bounds that are no whole numbers, in order, with at most `MAX_NUMBERS` between them."""
    for name, value in (("lower", lower), ("upper", upper)):
        if not _is_whole(value):
            _check.refuse(name, "be a whole number of at most 10**9", value, "count in larger units")
    first = _check.integer("lower", lower, minimum=-_MAX_SIZE)
    if not first < _check.integer("upper", upper, minimum=-_MAX_SIZE) < first + MAX_NUMBERS:
        rule = f"be above lower and below {first + MAX_NUMBERS}"
        _check.refuse("upper", rule, upper, "ask for the number in classes or larger units")


def distribution(name: str, given: object) -> tuple[tuple[int, Chance], ...]:
    """Return the numbers of a device with their chances, in order.

    Parameters
    ----------
    name : str
        Of the parameter, for the error.
    given : mapping or sequence of pairs
        Whole numbers with chances.
    """
    rule = f"be from 2 to {MAX_NUMBERS} whole numbers with chances that add up to 1"
    remedy = 'pass a mapping such as {0: "1/2", 1: "1/2"}'
    pairs = list(given.items()) if isinstance(given, Mapping) else given
    if not isinstance(pairs, list | tuple) or any(not _is_pair(pair) for pair in pairs):
        _check.refuse_type(name, rule, given, remedy)
    found = sorted((number, chance(name, part)) for number, part in pairs)
    numbers = {number for number, _ in found}
    if not 2 <= len(numbers) == len(found) <= MAX_NUMBERS or sum(part for _, part in found) != 1:
        _check.refuse(name, rule, given, remedy)
    return tuple((number, plain(part)) for number, part in found)


def parts(given: NumberDistribution) -> tuple[tuple[int, Fraction], ...]:
    """Return what `distribution` returned, with the chances as fractions."""
    return tuple((number, Fraction(part)) for number, part in cast("Sequence[tuple[int, Chance]]", given))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MAX_SIZE


def _is_pair(value: object) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and _is_whole(value[0])


def check_answers(name: str, answers: Sequence[int], value: object) -> None:
    """Refuse a design with more answers than can be counted on a sheet."""
    if len(answers) > _MAX_ANSWERS:
        rule = f"leave at most {_MAX_ANSWERS} different answers"
        _check.refuse(name, rule, value, "take fewer numbers, or closer ones")


def pair_rows(one: Sequence[Fraction], two: Sequence[Fraction]) -> Transition:
    """Return two rows without the answers that neither truth gives."""
    columns = [masses for masses in zip(one, two, strict=True) if any(masses)]
    first, second = zip(*columns, strict=True)
    return tuple(first), tuple(second)


@lru_cache(maxsize=16)
def matrix_of(transition: Transition) -> NDArray[np.float64]:
    """Return the chances as floats; not to be written to."""
    found = np.array([[float(mass) for mass in row] for row in transition])
    found.setflags(write=False)
    return found
