"""What estimates need of a survey design: the exact probability of each answer for each truth."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

from sfumato.numerics.interval import Interval

__all__ = ["AnswerMatrix", "EstimatedDesign", "EstimatedPrevalence", "SeveralAnswers", "TwoAnswers"]


class AnswerMatrix(Protocol):
    """What every estimate needs; see `sfumato.local.surveys.Design`."""

    @property
    def categories(self) -> tuple[Hashable, ...]:
        """What may be true of a respondent."""

    @property
    def answers(self) -> tuple[Hashable, ...]:
        """What may be answered."""

    @property
    def transition(self) -> tuple[tuple[Fraction, ...], ...]:
        """Probability of each answer, a row for each truth."""


class EstimatedDesign(AnswerMatrix, Protocol):
    """What estimates of one share at a time, and tests, need."""

    @property
    def slope(self) -> Fraction:
        """How much the probability of an answer rises with the share of its category."""


class TwoAnswers(EstimatedDesign, Protocol):
    """What an estimated prevalence needs."""

    @property
    def yes_if_true(self) -> Fraction:
        """Probability of "yes" of a person of whom the sensitive thing is true."""

    @property
    def yes_if_false(self) -> Fraction:
        """The same of anybody else."""


class SeveralAnswers(EstimatedDesign, Protocol):
    """What estimated shares of several categories need."""

    @property
    def floor(self) -> tuple[Fraction, ...]:
        """Probability of each answer of a person of another category."""


@runtime_checkable
class EstimatedPrevalence(Protocol):
    """An estimate that can be compared with another one: of one sample, of two, or of strata."""

    @property
    def prevalence(self) -> float:
        """The unbiased estimate, raw."""

    @property
    def maximum_likelihood(self) -> float:
        """The likeliest prevalence within [0, 1]."""

    @property
    def variance(self) -> float:
        """Unbiased estimate of the variance."""

    def interval(self, level: float = 0.95, method: Any = "clopper-pearson") -> Interval:
        """Return an interval, exact or approximate."""
