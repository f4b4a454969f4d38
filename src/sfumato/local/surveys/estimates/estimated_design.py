"""What estimates need of a survey design: the exact probability of each answer for each truth."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import Protocol

__all__ = ["AnswerMatrix", "EstimatedDesign", "SeveralAnswers", "TwoAnswers"]


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
