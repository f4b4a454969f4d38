"""What every survey design is: categories, answers, and the exact chance of each answer for each truth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.surveys.designs.privacy_loss import Transition, loss_of, odds_of
from sfumato.local.surveys.designs.tasks import Task
from sfumato.local.surveys.estimates.answer_counts import counts, indices
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.numerics.randomness.uniform import uniform_integers
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["Design"]

_MAX: Final = 1 << 62


class Design(ABC):
    r"""A randomized-response design: frozen parameters, from which all else follows.

    Notes
    -----
    In all designs here but `MatrixDesign` an answer's probability for its own category exceeds that for every
    other one by the same `slope` :math:`s`: the chance of answer :math:`j` is :math:`b_j + s\,\theta_j`, with
    :math:`\theta_j` the share of the category and :math:`b_j` the answer's `floor`. So each share follows
    from the count of its own answer, which is binomial.

    Examples
    --------
    Every design draws answers and prices them in the same way:

    >>> from sfumato.local.surveys import TwoCoins
    >>> design: Design = TwoCoins()
    >>> answers = design.respond([True] * 30 + [False] * 70, rng=1)
    >>> int(design.counts(answers).sum())
    100
    >>> design.odds, round(design.epsilon, 4)
    (Fraction(3, 1), 1.0986)
    """

    __slots__ = ()

    @property
    @abstractmethod
    def categories(self) -> tuple[Hashable, ...]:
        """What may be true of a respondent."""

    @property
    @abstractmethod
    def answers(self) -> tuple[Hashable, ...]:
        """What a respondent may say, in the order of the categories."""

    @property
    @abstractmethod
    def transition(self) -> Transition:
        """The exact probability of each answer, in one row for each category."""

    @property
    @abstractmethod
    def tasks(self) -> tuple[Task, ...]:
        """Who answers what, with which chance."""

    @property
    def slope(self) -> Fraction:
        """How much likelier an answer is for its own category than for any other."""
        return self.transition[0][0] - self.transition[1][0]

    @property
    def floor(self) -> tuple[Fraction, ...]:
        """The probability of each answer for categories that are not its own."""
        return tuple(self.transition[j - 1][j] for j in range(len(self.answers)))

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one respondent's answer: exact, under replace-one."""
        return loss_of(self.transition)

    @property
    def epsilon(self) -> float:
        """The epsilon of one answer: the log of the largest ratio of probabilities, rounded up.

        It is infinite where an answer rules a truth out, however seldom that answer is given.
        """
        return self.privacy_loss.epsilon(0.0)

    @property
    def odds(self) -> Fraction | float:
        """The maximum factor by which one answer moves any odds: exp(epsilon), exact; it may be infinite."""
        return odds_of(self.transition)

    def respond(self, truth: Any, rng: Rng = None) -> Any:
        """Draw the answers of respondents who follow the instructions.

        Parameters
        ----------
        truth : one category, or a list or array of them
            What is true of each respondent; for two categories also booleans.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        one answer, or an array of them
            Booleans where the answers are two and the truth is boolean.

        Raises
        ------
        ParameterError
            If a truth is none of the categories; the message does not show it.
        """
        several = isinstance(truth, list | tuple) or getattr(truth, "ndim", 0) > 0
        given = np.asarray(truth if several else [truth])
        said = self._draw(indices("truth", given, self.categories), rng)
        if len(self.answers) == 2 and given.dtype.kind == "b":
            found: Any = said.astype(bool)
        else:
            found = np.array(self.answers, dtype=None if _plain(self.answers) else object)[said]
        return found if several else found.tolist()[0]

    def _draw(self, which: NDArray[np.int64], rng: Rng) -> NDArray[np.int64]:
        """Draw the index of each answer: one uniform integer each, whatever is true."""
        whole, ends = _steps(self.transition)
        drawn = uniform_integers(whole, len(which), random_source(rng))
        return np.asarray((drawn[:, None] >= ends[which]).sum(axis=1), dtype=np.int64)

    def counts(self, answers: Any) -> NDArray[np.int64]:
        """Return how often each answer was given.

        Parameters
        ----------
        answers : array, list, column of a frame, or mapping
            The answers as they are named, booleans where they are two, or a count for each.

        Returns
        -------
        ndarray of int64
            In the order of `answers`.

        Raises
        ------
        ParameterError
            If there is another or a missing value among them, which the message does not show.
        """
        return counts("answers", answers, self.answers)

    def _check_transition(self, parameter: str, *, certain: bool = False) -> None:
        """Refuse what reveals nothing, shows somebody (unless it may be certain) or cannot be drawn."""
        value = getattr(self, parameter)
        if any(not any(column) for column in zip(*self.transition, strict=True)):
            _check.refuse(parameter, "leave every answer possible", value, "leave out an answer of chance 0")
        if not certain and any(not 0 < mass < 1 for row in self.transition for mass in row):
            remedy = "choose chances at which each truth can give each answer"
            _check.refuse(parameter, "leave every answer possible for every truth", value, remedy)
        if len(set(self.transition)) < 2:
            remedy = "choose other chances: such answers reveal nothing"
            _check.refuse(parameter, "make the answers depend on the truth", value, remedy)
        if lcm(*(mass.denominator for row in self.transition for mass in row)) > _MAX:
            remedy = "take simpler fractions"
            _check.refuse(parameter, "have a common denominator of at most 2**62", value, remedy)


@lru_cache(maxsize=64)
def _steps(transition: Transition) -> tuple[int, NDArray[np.int64]]:
    """Return the common denominator, and the integers at which each row steps to the next answer."""
    whole = lcm(*(mass.denominator for row in transition for mass in row))
    masses = np.array([[int(mass * whole) for mass in row] for row in transition], dtype=np.int64)
    return whole, np.cumsum(masses, axis=1)[:, :-1]


def _plain(labels: tuple[Hashable, ...]) -> bool:
    return all(type(label) is type(labels[0]) and isinstance(label, str | int | float) for label in labels)
