"""The respondent's number, or by chance one of a harmless question or of a device."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.surveys.designs.privacy_loss import Transition
from sfumato.local.surveys.designs.probabilities import Chance, chance, plain
from sfumato.local.surveys.designs.tasks import Kind, Task
from sfumato.local.surveys.quantitative.number_design import (
    NumberDesign,
    NumberDistribution,
    check_answers,
    check_bounds,
    distribution,
    parts,
)

__all__ = ["UnrelatedNumber"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UnrelatedNumber(NumberDesign):
    r"""A mixture: the true number, or one with a known distribution that has nothing to do with it.

    Parameters
    ----------
    lower, upper : int
        The public bounds of the respondent's number; at most 101 numbers.
    truth : Chance
        The chance that the true number is said.
    other : mapping of int to Chance
        The distribution of the other number: of the answers to a harmless question, or of what a device
        shows.

    Notes
    -----
    With :math:`t` for the truth's chance and :math:`w_a` for those of the other number, :math:`a` is said
    with the chance :math:`t\theta_a + (1-t) w_a`, and :math:`(a - (1-t)\sum_b b\,w_b)/t` is unbiased.

    Guarantee: the loss of one answer under replace-one, exact. Its epsilon is
    :math:`\log(1 + \frac{t}{(1-t)\min w})`, the minimum over the numbers between the bounds; it is infinite
    where ``other`` leaves one of them out, which then is said by those alone of whom it is true.

    References
    ----------
    Greenberg, Kuebler, Abernathy, Horvitz (1971), "Application of the randomized response technique in
    obtaining quantitative data"; Liu, Chow (1976), "A new discrete quantitative randomized response model".

    Examples
    --------
    >>> even = {number: "1/8" for number in range(8)}
    >>> design = UnrelatedNumber(lower=0, upper=7, truth="1/2", other=even)
    >>> round(design.epsilon, 4), design.estimate([2] * 50 + [5] * 50).mean
    (2.1972, 3.5)
    >>> UnrelatedNumber(lower=0, upper=7, truth="1/2", other={0: "1/2", 1: "1/2"}).epsilon
    inf
    """

    lower: int
    upper: int
    truth: Chance
    other: NumberDistribution

    def __post_init__(self) -> None:
        check_bounds(self.lower, self.upper)
        object.__setattr__(self, "truth", plain(chance("truth", self.truth)))
        object.__setattr__(self, "other", distribution("other", self.other))
        check_answers("other", self._numbers, self.other)
        self._check_transition("other", certain=True)

    @property
    def _numbers(self) -> tuple[int, ...]:
        whole = range(self.lower, self.upper + 1)
        return tuple(sorted({*whole, *(number for number, _ in parts(self.other))}))

    @property
    def answers(self) -> tuple[Hashable, ...]:
        """The numbers that may be said, in order."""
        return self._numbers

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The truth, or a number that the device names."""
        truth = Fraction(self.truth)
        said = (Task((1 - truth) * part, Kind.SAY, number) for number, part in parts(self.other))
        return Task(truth, Kind.TRUTH), *said

    @property
    def transition(self) -> Transition:
        """The chance of each number for each true one."""
        truth, others = Fraction(self.truth), dict(parts(self.other))
        device = [(1 - truth) * Fraction(others.get(number, 0)) for number in self._numbers]
        return tuple(
            tuple(mass + truth * (number == true) for number, mass in zip(self._numbers, device, strict=True))
            for true in range(self.lower, self.upper + 1)
        )

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weight of each number in the estimate of the mean."""
        truth = Fraction(self.truth)
        mean = sum((number * part for number, part in parts(self.other)), Fraction(0))
        return np.array([float((number - (1 - truth) * mean) / truth) for number in self._numbers])

    def _pairs(self) -> Iterator[Transition]:
        # Of two truths only their own numbers tell them apart; all else is as likely for both.
        truth, others = Fraction(self.truth), dict(parts(self.other))
        for one, two in combinations(range(self.lower, self.upper + 1), 2):
            first, second = ((1 - truth) * Fraction(others.get(number, 0)) for number in (one, two))
            rest = 1 - truth - first - second
            rows = (truth + first, second, rest), (first, truth + second, rest)
            yield tuple(row if rest else row[:2] for row in rows)
