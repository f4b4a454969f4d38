"""Designs in two samples that also estimate who does not follow the instructions."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from sfumato import _check
from sfumato.local.surveys.designs.privacy_loss import Transition, loss_of, odds_of
from sfumato.local.surveys.designs.probabilities import Chance, chance, plain
from sfumato.local.surveys.estimates.answer_counts import counts
from sfumato.local.surveys.estimates.noncompliance import CheatingEstimate, LyingEstimate
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["CheatingDetection", "StochasticLieDetector"]


class _TwoGroups:
    """What both designs share: two samples, in which others say "yes" with different chances."""

    __slots__ = ()

    @property
    @abstractmethod
    def class_transitions(self) -> tuple[Transition, Transition]:
        """Of each sample, the chances of "no" and "yes" of three classes.

        They are those who follow and have the trait, those who follow and have it not, and those who always
        say "no".
        """

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one answer, in either sample, of somebody who follows the instructions."""
        return loss_of(*(rows[:2] for rows in self.class_transitions))

    @property
    def epsilon(self) -> float:
        """The epsilon of one answer, rounded up; infinite where an answer rules a truth out."""
        return self.privacy_loss.epsilon(0.0)

    @property
    def odds(self) -> Fraction | float:
        """The maximum factor by which one answer moves any odds: exp(epsilon), exact; it may be infinite."""
        return odds_of(*(rows[:2] for rows in self.class_transitions))


def _pair(first: Any, second: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the counts of "no" and "yes" in both samples."""
    found = []
    for name, given in (("first", first), ("second", second)):
        no, yes = counts(name, given, ("no", "yes")).tolist()
        found.append((no, yes))
    return found[0], found[1]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CheatingDetection(_TwoGroups):
    r"""Forced response in two samples, so that those who say "no" whatever they are to say are counted.

    Parameters
    ----------
    yes : pair of Chance
        The chances of a forced "yes" in the two samples, different.
    no : pair of Chance, optional
        The chances of a forced "no", in the symmetric variant; without, none is forced.

    Notes
    -----
    Three classes: those who follow the instructions and have the trait (share :math:`\pi`), those who follow
    and have it not (:math:`\beta`), and those who say "no" whatever they are to say (:math:`\gamma`), with
    the trait or without. "Yes" has the chance :math:`\pi(1 - b_i) + \beta a_i` in sample i. So the share of
    people with the trait is between :math:`\pi` and :math:`\pi + \gamma`.

    Guarantee: for each answer of somebody who follows the instructions, the epsilon of the worse sample under
    replace-one. Without a forced "no" somebody with the trait never says it, and that is infinite.

    References
    ----------
    Clark, Desharnais (1998), "Honest answers to embarrassing questions: detecting cheating in the randomized
    response model"; Ostapczuk, Moshagen, Zhao, Musch (2009), "Assessing sensitive attributes using the
    randomized response technique", the symmetric variant.

    Examples
    --------
    >>> design = CheatingDetection(yes=("1/4", "3/4"))
    >>> found = design.estimate({"yes": 325, "no": 675}, {"yes": 575, "no": 425})
    >>> round(found.honest_yes, 6), round(found.honest_no, 6), round(found.cheaters, 6)
    (0.2, 0.5, 0.3)
    """

    yes: tuple[Chance, Chance]
    no: tuple[Chance, Chance] | None = None

    def __post_init__(self) -> None:
        yes = _two("yes", self.yes)
        no = (Fraction(0), Fraction(0)) if self.no is None else _two("no", self.no)
        if any(forced + denied >= 1 for forced, denied in zip(yes, no, strict=True)):
            _check.refuse(
                "no", "be below 1 less the chance of a forced yes", self.no, "some answers have to be true"
            )
        (first, other), (second, last) = zip(yes, no, strict=True)
        if (1 - other) * second == first * (1 - last):
            remedy = "force other shares in the second sample"
            _check.refuse("yes", "make the two samples differ", self.yes, remedy)
        object.__setattr__(self, "yes", tuple(map(plain, yes)))
        object.__setattr__(self, "no", None if self.no is None else tuple(map(plain, no)))

    @property
    def class_transitions(self) -> tuple[Transition, Transition]:
        """Of each sample, the chances of "no" and "yes" of three classes."""
        first, second = (
            _rows(1 - Fraction(denied), Fraction(forced))
            for forced, denied in zip(self.yes, self.no or (0, 0), strict=True)
        )
        return first, second

    def estimate(self, first: Any, second: Any) -> CheatingEstimate:
        """Return the estimated shares of the three classes.

        Parameters
        ----------
        first, second : array, list, column of a frame, or mapping
            "no" or "yes", booleans, zeros and ones, or a count of each, in the two samples.

        Returns
        -------
        CheatingEstimate
        """
        return CheatingEstimate(design=self, counts=_pair(first, second))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StochasticLieDetector(_TwoGroups):
    r"""Mangat's design in two samples, so that those who lie about the trait are counted.

    Parameters
    ----------
    truth : pair of Chance
        The chances with which somebody without the trait says "no" in the two samples, different.

    Notes
    -----
    Who has the trait (share :math:`\pi`) says "yes" if honest, with the chance :math:`t`, and else "no"; who
    has it not follows the instructions. "Yes" has the chance :math:`\pi t + (1 - \pi)(1 - p_i)` in sample i.

    Guarantee: none. Somebody who follows the instructions and has the trait never says "no", so an answer
    rules that out, and the epsilon is infinite.

    References
    ----------
    Moshagen, Musch, Erdfelder (2012), "A stochastic lie detector".

    Examples
    --------
    >>> design = StochasticLieDetector(truth=("1/6", "5/6"))
    >>> found = design.estimate({"yes": 860, "no": 140}, {"yes": 380, "no": 620})
    >>> round(found.prevalence, 6), round(found.honesty, 4), design.epsilon
    (0.28, 0.9286, inf)
    """

    truth: tuple[Chance, Chance]

    def __post_init__(self) -> None:
        truth = _two("truth", self.truth)
        if truth[0] == truth[1]:
            _check.refuse(
                "truth", "be two different chances", self.truth, "pass 1 minus the first as the second"
            )
        object.__setattr__(self, "truth", tuple(map(plain, truth)))

    @property
    def class_transitions(self) -> tuple[Transition, Transition]:
        """Of each sample, the chances of "no" and "yes" of three classes."""
        first, second = (_rows(Fraction(1), 1 - Fraction(truth)) for truth in self.truth)
        return first, second

    def estimate(self, first: Any, second: Any) -> LyingEstimate:
        """Return the estimated prevalence and honesty.

        Parameters
        ----------
        first, second : array, list, column of a frame, or mapping
            "no" or "yes", booleans, zeros and ones, or a count of each, in the two samples.

        Returns
        -------
        LyingEstimate
        """
        return LyingEstimate(design=self, counts=_pair(first, second))


def _two(name: str, values: object) -> tuple[Fraction, Fraction]:
    if not isinstance(values, list | tuple) or len(values) != 2:
        _check.refuse_type(name, "be two chances, one for each sample", values, 'pass ("1/4", "3/4")')
    return chance(name, values[0]), chance(name, values[1])


def _rows(true: Fraction, false: Fraction) -> Transition:
    """Return the chances of "no" and "yes" of the three classes, from those of "yes" of two."""
    return (1 - true, true), (1 - false, false), (Fraction(1), Fraction(0))
