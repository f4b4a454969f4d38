"""The unrelated question: by chance a respondent answers the sensitive question or a harmless one."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from sfumato.local.surveys.designs.binary import BinaryDesign
from sfumato.local.surveys.designs.probabilities import Chance, chance, plain
from sfumato.local.surveys.designs.tasks import Kind, Task

__all__ = ["UnrelatedQuestion"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UnrelatedQuestion(BinaryDesign):
    r"""A device chooses the sensitive question or a harmless one, of which the share of "yes" is known.

    Parameters
    ----------
    sensitive : Chance
        The chance of the sensitive question.
    innocuous : Chance
        The share of people who say "yes" to the harmless one, such as 1/4 for a birthday of somebody in
        January, February or March. Where it is not known: `UnrelatedQuestionTwoSamples`.

    Notes
    -----
    With :math:`p` and :math:`\pi` for the two, "yes" has the chances :math:`p + (1-p)\pi` and
    :math:`(1-p)\pi`.

    Guarantee: for each answer :math:`\log\max\left(1 + \frac{p}{(1-p)\pi}, 1 + \frac{p}{(1-p)(1-\pi)}
    \right)`-DP under replace-one, exact; to whoever gives the respondent's harmless answer the chance
    :math:`\pi`, whatever the sensitive trait. To somebody who knows it, one of the two answers betrays the
    truth.

    References
    ----------
    Greenberg, Abul-Ela, Simmons, Horvitz (1969), "The unrelated question randomized response model".

    Examples
    --------
    >>> design = UnrelatedQuestion(sensitive="2/3", innocuous="1/4")
    >>> design.yes_if_true, design.yes_if_false
    (Fraction(3, 4), Fraction(1, 12))
    """

    sensitive: Chance
    innocuous: Chance

    def __post_init__(self) -> None:
        object.__setattr__(self, "sensitive", plain(chance("sensitive", self.sensitive)))
        object.__setattr__(self, "innocuous", plain(chance("innocuous", self.innocuous)))
        self._check_transition("sensitive")

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The sensitive question, or the harmless one."""
        sensitive = Fraction(self.sensitive)
        return Task(sensitive, Kind.TRUTH), Task(1 - sensitive, Kind.OTHER)

    @property
    def yes_if_true(self) -> Fraction:
        """The chance of the sensitive question, or of "yes" to the harmless one."""
        return Fraction(self.sensitive) + self.yes_if_false

    @property
    def yes_if_false(self) -> Fraction:
        """The chance of the harmless question with "yes"."""
        return (1 - Fraction(self.sensitive)) * Fraction(self.innocuous)
