"""Designs with two answers about one sensitive trait."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

from sfumato import _check
from sfumato.local.surveys.designs.design import Design
from sfumato.local.surveys.designs.privacy_loss import Transition
from sfumato.local.surveys.designs.probabilities import Chance, chance
from sfumato.local.surveys.estimates.prevalence import Prevalence
from sfumato.local.surveys.estimates.risk import RespondentRisk

__all__ = ["BinaryDesign"]


class BinaryDesign(Design):
    """A design that asks whether something is true of a respondent.

    Notes
    -----
    A subclass states two chances, `yes_if_true` and `yes_if_false`; estimates, prices, risks and plans follow
    from them alone.

    Examples
    --------
    >>> from sfumato.local.surveys import Warner
    >>> design: BinaryDesign = Warner(truth="3/4")
    >>> design.yes_if_true, design.yes_if_false
    (Fraction(3, 4), Fraction(1, 4))
    >>> design.yes_rate(0.5), round(design.design_effect(0.1), 1)
    (0.5, 9.3)
    >>> design.estimate({"yes": 400, "no": 600}).prevalence
    0.3
    """

    __slots__ = ()

    @property
    @abstractmethod
    def yes_if_true(self) -> Fraction:
        """The chance of the second answer ("yes") of somebody of whom the sensitive thing is true."""

    @property
    @abstractmethod
    def yes_if_false(self) -> Fraction:
        """The chance of the second answer ("yes") of somebody of whom it is false."""

    @property
    def categories(self) -> tuple[Hashable, ...]:
        """False and True."""
        return (False, True)

    @property
    def answers(self) -> tuple[Hashable, ...]:
        """The two answers; the second counts as "yes"."""
        return ("no", "yes")

    @property
    def transition(self) -> Transition:
        """The chances of the two answers where it is false, then where it is true."""
        return tuple((1 - yes, yes) for yes in (self.yes_if_false, self.yes_if_true))

    @property
    def slope(self) -> Fraction:
        """How much likelier "yes" is where it is true; below 0 where "yes" rather means that it is false."""
        return self.yes_if_true - self.yes_if_false

    def estimate(self, answers: Any) -> Prevalence:
        """Return the estimate from answers.

        Parameters
        ----------
        answers : array, list, column of a frame, or mapping
            As in `counts`: named answers, booleans, zeros and ones, or the count of each answer.

        Returns
        -------
        Prevalence
        """
        no, yes = self.counts(answers).tolist()
        return Prevalence(design=self, yes=yes, respondents=no + yes)

    def yes_rate(self, prevalence: float) -> float:
        """Return the share of "yes" to expect.

        Parameters
        ----------
        prevalence : float
            The true share, from 0 to 1.

        Returns
        -------
        float
            From 0 to 1.
        """
        return float(self.yes_if_false) + float(self.slope) * _share("prevalence", prevalence)

    def variance(self, respondents: int, prevalence: float) -> float:
        """Return the variance of the estimate, of sampling and randomization together.

        Parameters
        ----------
        respondents : int
            At least 1.
        prevalence : float
            The true share, from 0 to 1.

        Returns
        -------
        float
            Its root is the standard error of the prevalence.
        """
        rate = self.yes_rate(prevalence)
        count = _check.integer("respondents", respondents, minimum=1)
        return rate * (1 - rate) / count / float(self.slope) ** 2

    def design_effect(self, prevalence: float) -> float:
        """Return how many times the respondents of a direct question this design needs for the same error.

        Parameters
        ----------
        prevalence : float
            Strictly between 0 and 1.

        Returns
        -------
        float
            At least 1.
        """
        theta = _check.unit_interval("prevalence", prevalence)
        return self.variance(1, theta) / (theta * (1 - theta))

    def risk(self, prior: Chance) -> RespondentRisk:
        """Return what each answer reveals to somebody with a prior opinion.

        Parameters
        ----------
        prior : Chance
            The chance they give that the sensitive thing is true of the respondent.

        Returns
        -------
        RespondentRisk
            Exact fractions; odds of infinity where only somebody with the trait gives an answer.
        """
        before = chance("prior", prior)
        odds: dict[Hashable, Fraction | float] = {}
        posterior: dict[Hashable, Fraction] = {}
        for answer, false, true in zip(self.answers, *self.transition, strict=True):
            odds[answer] = true / false if false else math.inf
            posterior[answer] = before * true / (before * true + (1 - before) * false)
        return RespondentRisk(prior=before, posterior=posterior, odds=odds)


def _share(name: str, value: float) -> float:
    found = _check.finite(name, value)
    if not 0 <= found <= 1:
        _check.refuse(name, "be from 0 to 1", value, "state a share, not a percentage")
    return found
