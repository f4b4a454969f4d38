"""A number to which the respondent adds one that a device draws."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, final

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
    matrix_of,
    pair_rows,
    parts,
)

__all__ = ["AdditiveScrambling"]

_SINGULAR: Final = 1e-3


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdditiveScrambling(NumberDesign):
    r"""The respondent adds a number that a device draws, and says the sum.

    Parameters
    ----------
    lower, upper : int
        The public bounds of the respondent's number; at most 101 numbers.
    noise : mapping of int to Chance
        The numbers that the device draws, with their chances.
    wrap : bool
        Whether counting goes on at ``lower`` after ``upper``, as on a clock. Then every number between the
        bounds may be said, and the epsilon is finite where the device draws every step of the clock.

    Notes
    -----
    Guarantee: the loss of one answer under replace-one, exact. Without ``wrap`` the largest sum is said of
    ``upper`` alone: an answer that rules numbers out makes the epsilon infinite, however seldom it is given.
    With ``wrap`` it is the log of the largest ratio of two chances of the device, where that draws all
    ``upper - lower + 1`` steps.

    Without ``wrap`` a sum minus the mean of the noise is unbiased. With it, the weights solve
    :math:`\sum_s p_s w(v + s) = v`, which has one solution where the discrete Fourier transform of the noise
    has no zero.

    References
    ----------
    Himmelfarb, Edgell (1980), "Additive constants model: a randomized response technique for eliminating
    evasiveness to quantitative response questions".

    Examples
    --------
    >>> clock = AdditiveScrambling(
    ...     lower=0, upper=3, noise={0: "5/8", 1: "1/8", 2: "1/8", 3: "1/8"}, wrap=True
    ... )
    >>> round(clock.epsilon, 4), clock.estimate({0: 500, 1: 250, 2: 125, 3: 125}).mean
    (1.6094, 0.25)
    >>> AdditiveScrambling(lower=0, upper=3, noise={0: "1/2", 1: "1/2"}).epsilon
    inf
    """

    lower: int
    upper: int
    noise: NumberDistribution
    wrap: bool = False

    def __post_init__(self) -> None:
        check_bounds(self.lower, self.upper)
        noise = distribution("noise", self.noise)
        if not isinstance(self.wrap, bool):
            _check.refuse("wrap", "be True or False", self.wrap, "leave it out for plain sums")
        object.__setattr__(self, "noise", noise)
        if self.wrap:
            steps = np.zeros(self.upper - self.lower + 1)
            for step, part in parts(self.noise):
                steps[step % len(steps)] += float(part)
            if float(np.abs(np.fft.fft(steps)).min()) < _SINGULAR:
                rule, found = "leave the numbers' distribution estimable", "different ones give equal answers"
                _check.refuse_state("noise", rule, found, "make one of its chances larger")
        check_answers("noise", self._numbers, self.noise)
        self._check_transition("noise", certain=True)

    @property
    def _numbers(self) -> tuple[int, ...]:
        whole = range(self.lower, self.upper + 1)
        return (
            tuple(whole) if self.wrap else tuple(sorted({v + s for v in whole for s, _ in parts(self.noise)}))
        )

    @property
    def answers(self) -> tuple[Hashable, ...]:
        """The sums that may be said, in order."""
        return self._numbers

    @property
    def tasks(self) -> tuple[Task, ...]:
        """What is added, with which chance."""
        return tuple(Task(part, Kind.ADD, step) for step, part in parts(self.noise))

    @property
    def transition(self) -> Transition:
        """The chance of each sum for each number."""
        return _sums(self.lower, self.upper, parts(self.noise), self.wrap)

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weight of each sum in the estimate of the mean."""
        if self.wrap:
            numbers = np.arange(self.lower, self.upper + 1, dtype=np.float64)
            middle = (self.lower + self.upper) / 2
            return np.asarray(np.linalg.solve(matrix_of(self.transition), numbers - middle) + middle)
        mean = sum((step * part for step, part in parts(self.noise)), Fraction(0))
        return np.array([float(number - mean) for number in self._numbers])

    def _pairs(self) -> Iterator[Transition]:
        # Only the distance of two numbers matters: of sums, and around the clock.
        rows = self.transition
        return (pair_rows(rows[0], row) for row in rows[1:])


@lru_cache(maxsize=16)
def _sums(lower: int, upper: int, noise: tuple[tuple[int, Fraction], ...], wrap: bool) -> Transition:
    count = upper - lower + 1
    numbers = list(range(lower, upper + 1))
    said = numbers if wrap else sorted({v + step for v in numbers for step, _ in noise})
    index = {number: place for place, number in enumerate(said)}
    rows = []
    for number in numbers:
        row = [Fraction(0)] * len(said)
        for step, part in noise:
            total = lower + (number - lower + step) % count if wrap else number + step
            row[index[total]] += part
        rows.append(tuple(row))
    return tuple(rows)
