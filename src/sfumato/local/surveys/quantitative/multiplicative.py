"""A number that the respondent multiplies by one that a device draws."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.surveys.designs.privacy_loss import Transition
from sfumato.local.surveys.designs.tasks import Kind, Task
from sfumato.local.surveys.quantitative.number_design import (
    NumberDesign,
    NumberDistribution,
    check_answers,
    check_bounds,
    distribution,
    pair_rows,
    parts,
)

__all__ = ["MultiplicativeScrambling"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MultiplicativeScrambling(NumberDesign):
    """The respondent multiplies by a number that a device draws, and says the product.

    Parameters
    ----------
    lower, upper : int
        The public bounds of the respondent's number; at most 101 numbers.
    factors : mapping of int to Chance
        The positive numbers that the device draws, with their chances.

    Notes
    -----
    Guarantee: the loss of one answer under replace-one, exact. Its epsilon is infinite: the product of the
    largest factor and the bound that is farther from zero is said of that bound alone, and 0 of 0 alone. It
    hides a number among those that give the same product; `possible` has these.

    The answer over the mean of the factors is unbiased.

    References
    ----------
    Poole (1974), "Estimation of the distribution function of a continuous type random variable through
    randomized response"; Eichhorn, Hayre (1983), "Scrambled randomized response methods for obtaining
    sensitive quantitative data".

    Examples
    --------
    >>> design = MultiplicativeScrambling(lower=0, upper=4, factors={1: "1/2", 2: "1/4", 4: "1/4"})
    >>> design.epsilon, design.possible(4), design.possible(0)
    (inf, (1, 2, 4), (0,))
    >>> design.estimate([0, 4, 8, 2, 1, 4]).mean.__round__(3)
    1.583
    """

    lower: int
    upper: int
    factors: NumberDistribution

    def __post_init__(self) -> None:
        check_bounds(self.lower, self.upper)
        factors = distribution("factors", self.factors)
        if factors[0][0] < 1:
            _check.refuse("factors", "be positive numbers", self.factors, "a factor of 0 says nothing")
        object.__setattr__(self, "factors", factors)
        check_answers("factors", self._numbers, self.factors)
        self._check_transition("factors", certain=True)

    @property
    def _numbers(self) -> tuple[int, ...]:
        whole = range(self.lower, self.upper + 1)
        return tuple(sorted({v * factor for v in whole for factor, _ in parts(self.factors)}))

    @property
    def answers(self) -> tuple[Hashable, ...]:
        """The products that may be said, in order."""
        return self._numbers

    @property
    def tasks(self) -> tuple[Task, ...]:
        """What is multiplied by, with which chance."""
        return tuple(Task(part, Kind.MULTIPLY, factor) for factor, part in parts(self.factors))

    @property
    def transition(self) -> Transition:
        """The chance of each product for each number."""
        return _products(self.lower, self.upper, parts(self.factors))

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weight of each product in the estimate of the mean."""
        mean = sum((factor * part for factor, part in parts(self.factors)), Fraction(0))
        return np.array([float(number / mean) for number in self._numbers])

    def _pairs(self) -> Iterator[Transition]:
        return (pair_rows(*rows) for rows in combinations(self.transition, 2))


@lru_cache(maxsize=16)
def _products(lower: int, upper: int, factors: tuple[tuple[int, Fraction], ...]) -> Transition:
    numbers = range(lower, upper + 1)
    said = sorted({number * factor for number in numbers for factor, _ in factors})
    index = {number: place for place, number in enumerate(said)}
    rows = []
    for number in numbers:
        row = [Fraction(0)] * len(said)
        for factor, part in factors:
            row[index[number * factor]] += part
        rows.append(tuple(row))
    return tuple(rows)
