"""What turns teachers' votes into labels privately."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.additive import as_number
from sfumato.mechanisms.base.rational import Number, sqrt_up
from sfumato.mechanisms.noise.gaussian import Gaussian
from sfumato.numerics.randomness.source import RandomSource
from sfumato.privacy.loss import PrivacyLoss, compose
from sfumato.privacy.neighboring import Neighboring

__all__ = ["UNANSWERED", "Aggregator", "as_stddev", "as_votes", "check_noise", "vote_noise"]

Votes: TypeAlias = NDArray[np.int64]
"""Counts of shape (questions, classes)."""
Labels: TypeAlias = NDArray[np.int64]
"""Of shape (questions,)."""
Probabilities: TypeAlias = NDArray[np.float64]
"""Of shape (questions, classes)."""
UNANSWERED: Final = -1
"""What stands for a label where none was released."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregator(ABC):
    """A private answer to a vote.

    A subclass is a frozen dataclass of noise parameters. It charges no ledger and counts no questions: a
    `Poll` does both.

    Parameters
    ----------
    neighboring : Neighboring
        Who is protected. One unit changes one teacher under add/remove and zero-out, two under replace-one,
        where the unit that comes may belong to another part than the one that goes.

    Examples
    --------
    >>> from sfumato.learning import GNMax
    >>> aggregator: Aggregator = GNMax(stddev=40)
    >>> aggregator.loss(questions=100).epsilon(1e-5) < aggregator.loss(questions=200).epsilon(1e-5)
    True
    """

    neighboring: Neighboring = Neighboring.ADD_REMOVE

    def __post_init__(self) -> None:
        _check.instance("neighboring", self.neighboring, Neighboring, "use Neighboring.ADD_REMOVE, say")
        self._settle()

    @property
    def teachers_moved(self) -> int:
        """The most teachers that one unit changes."""
        return 2 if self.neighboring is Neighboring.REPLACE_ONE else 1

    @property
    @abstractmethod
    def question_loss(self) -> PrivacyLoss | None:
        """What every question costs, answered or not; None if nothing."""

    @property
    @abstractmethod
    def answer_loss(self) -> PrivacyLoss:
        """What every answered question costs besides."""

    def loss(self, *, questions: int, answers: int | None = None) -> PrivacyLoss:
        """Return the loss of so many questions, of which at most so many are answered.

        Parameters
        ----------
        questions : int
        answers : int, optional
            As many as questions, unless given.

        Returns
        -------
        PrivacyLoss

        Notes
        -----
        Guarantee: for votes and questions that are chosen with regard to earlier labels, however the answered
        ones are strewn among the questions. *Proof.* Draw, for the whole run, ``questions`` outcomes of the
        pair that dominates the check and ``answers`` of the one that dominates an answer. Whatever came
        before, the next check or answer on either dataset is a randomized function of the next unused outcome
        of its pair (Blackwell), so all labels are a function of outcomes whose loss is the composition.
        """
        questions = _check.integer("questions", questions)
        answers = questions if answers is None else _check.integer("answers", answers)
        if answers > questions:
            _check.refuse("answers", "be at most questions", answers, "plan more questions")
        parts = [self.answer_loss * answers]
        if self.question_loss is not None:
            parts.append(self.question_loss * questions)
        return compose(parts)

    @abstractmethod
    def _settle(self) -> None:
        """Check a subclass's own parameters."""

    @abstractmethod
    def label(
        self, votes: Votes, answers: int, source: RandomSource, probabilities: Probabilities | None = None
    ) -> tuple[Labels, int]:
        """Return a label for each row, and how many of ``answers`` were paid for; the caller's to charge.

        Parameters
        ----------
        votes : int64 array of shape (n, classes)
            Private; a vote a teacher in each row.
        answers : int
            The most questions that may be answered; those behind stay `UNANSWERED`.
        source : RandomSource
        probabilities : float64 array of shape (n, classes), optional
            What the student thinks; public.

        Returns
        -------
        labels : int64 array of shape (n,)
            Classes, and `UNANSWERED` where none is released.
        paid : int
            How many answers are to be charged, at most ``answers``.
        """


def as_votes(votes: Any) -> NDArray[np.int64]:
    """Return votes as an array of shape (n, classes); the values are not looked at."""
    array = np.asarray(votes)
    if array.ndim != 2 or array.dtype.kind not in "iu" or array.shape[1] < 2:
        rule = "be integers of shape (examples, classes), two classes or more"
        _check.refuse_type("votes", rule, array, "count the teachers' votes for each class")
    return array.astype(np.int64)


def vote_noise(stddev: Number, moved: int, neighboring: Neighboring) -> Gaussian:
    """Return noise on a histogram of votes of which ``moved`` are cast otherwise.

    One teacher's vote leaves one class for another: two entries move by 1. Two teachers' votes may leave one
    class for another together, which moves the L2 norm most, to the square root of 8.
    """
    if moved == 1:
        return Gaussian(sensitivity=1, l0=2, stddev=stddev, neighboring=neighboring)
    return Gaussian(l2=sqrt_up(Fraction(8)), stddev=stddev, neighboring=neighboring, integral=True)


def check_noise(stddev: Number, moved: int, neighboring: Neighboring) -> Gaussian:
    """Return noise on the largest number of votes, which each of ``moved`` votes moves by at most 1."""
    return Gaussian(sensitivity=moved, stddev=stddev, neighboring=neighboring)


def as_stddev(name: str, value: object) -> Number:
    """Return a standard deviation, or refuse it by its name."""
    return as_number(name, value, "tens of votes, say: the more, the more private")
