"""How a step's noise or clip norm changes over a run, as factors that are fixed before the first step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final, Self, final

from sfumato import _check

__all__ = ["Schedule"]

_MOST: Final = 1 << 20


@final
@dataclass(frozen=True, slots=True)
class Schedule:
    """Factors of the noise multiplier or of the clip norm, by step.

    Parameters
    ----------
    factors : sequence of float
        Positive. The last one holds for all steps after it.
    every : int
        How many steps each factor holds for: the steps of an epoch, for a schedule by epochs.

    Notes
    -----
    A schedule is a value that is there before the first step, so each step is priced by its own noise. What
    is chosen during the run from released losses is no schedule.

    Examples
    --------
    >>> halved = Schedule((1.0, 0.5), every=100)
    >>> halved.at(99), halved.at(100), halved.at(100_000)
    (1.0, 0.5, 0.5)
    >>> halved.counts(250)
    {1.0: 100, 0.5: 150}
    """

    factors: Sequence[float]
    every: int = 1

    def __post_init__(self) -> None:
        given: object = self.factors
        remedy = "pass (1.0, 0.5), say, or use Schedule.exponential"
        if isinstance(given, str) or not isinstance(given, Sequence) or not 0 < len(given) <= _MOST:
            _check.refuse_type("factors", "be a sequence of one number or more, at most 2**20", given, remedy)
        for factor in given:
            if not isinstance(factor, int | float) or not (isfinite(factor) and factor > 0):
                _check.refuse("factors", "be positive numbers", factor, remedy)
        object.__setattr__(self, "factors", tuple(float(factor) for factor in given))
        object.__setattr__(self, "every", _check.integer("every", self.every, minimum=1))

    @classmethod
    def exponential(cls, gamma: float, *, steps: int, every: int = 1) -> Self:
        """Return factors that are multiplied by ``gamma`` after so many steps each, from 1 on.

        Parameters
        ----------
        gamma : float
        steps : int
            Of the run.
        every : int
            After how many steps the factor changes: the steps of an epoch, or of several.

        Returns
        -------
        Schedule

        Examples
        --------
        >>> Schedule.exponential(0.5, steps=5, every=2)
        Schedule(factors=(1.0, 0.5, 0.25), every=2)
        """
        return cls.of(lambda place: gamma**place, steps=steps, every=every)

    @classmethod
    def of(cls, function: Callable[[int], float], *, steps: int, every: int = 1) -> Self:
        """Return the factors that a function gives for 0, 1, ..., each for so many steps.

        Parameters
        ----------
        function : callable
            Called here, once for each number, and not again.
        steps : int
            Of the run.
        every : int
            How many steps each factor holds for.

        Returns
        -------
        Schedule

        Examples
        --------
        >>> Schedule.of(lambda epoch: 1 / (1 + epoch), steps=6, every=3)
        Schedule(factors=(1.0, 0.5), every=3)
        """
        _check.integer("every", every, minimum=1)
        many = -(-_check.integer("steps", steps, minimum=1) // every)
        if many > _MOST:
            _check.refuse("steps", "make at most 2**20 factors", steps, "pass a larger every=")
        return cls(tuple(function(place) for place in range(many)), every)

    def at(self, step: int) -> float:
        """Return the factor of a step.

        Parameters
        ----------
        step : int
            From 0.

        Returns
        -------
        float
        """
        return self.factors[min(step // self.every, len(self.factors) - 1)]

    def counts(self, steps: int) -> dict[float, int]:
        """Return how many of the first steps have each factor.

        Parameters
        ----------
        steps : int

        Returns
        -------
        dict of float to int
        """
        found: dict[float, int] = {}
        for place, factor in enumerate(self.factors):
            last = place == len(self.factors) - 1
            many = max(0, steps - place * self.every) if last else min(self.every, steps - place * self.every)
            if many <= 0:
                break
            found[factor] = found.get(factor, 0) + many
        return found
