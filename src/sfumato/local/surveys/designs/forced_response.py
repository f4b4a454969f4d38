"""Forced response: by chance a respondent says "yes" or "no" whatever is true."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from sfumato import _check
from sfumato.local.surveys.designs.binary import BinaryDesign
from sfumato.local.surveys.designs.probabilities import Chance, chance, plain
from sfumato.local.surveys.designs.tasks import Kind, Task

__all__ = ["ForcedResponse"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ForcedResponse(BinaryDesign):
    r"""A device says: answer truly, say "yes", or say "no"; only the respondent sees it.

    Parameters
    ----------
    yes, no : Chance
        The chances of a forced "yes" and of a forced "no", together below 1.

    Notes
    -----
    With :math:`a = 1 - p_{no}` and :math:`b = p_{yes}` the chances of "yes":

    Guarantee: for each answer :math:`\max(\log\frac{a}{b}, \log\frac{1-b}{1-a})`-DP under replace-one; the
    loss is the exact trade-off curve, which composes to less than that epsilon does.

    References
    ----------
    Boruch (1971), "Assuring confidentiality of responses in social research"; Fox, Tracy (1986), "Randomized
    response".

    Examples
    --------
    A die: 1 forces "yes", 6 forces "no", the rest is the truth.

    >>> die = ForcedResponse(yes="1/6", no="1/6")
    >>> round(die.epsilon, 4), die.yes_if_true
    (1.6094, Fraction(5, 6))
    """

    yes: Chance
    no: Chance

    def __post_init__(self) -> None:
        yes, no = chance("yes", self.yes), chance("no", self.no)
        if yes + no >= 1:
            _check.refuse("no", f"be below {1 - yes}", self.no, "some answers have to be true")
        object.__setattr__(self, "yes", plain(yes))
        object.__setattr__(self, "no", plain(no))
        self._check_transition("yes")

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The truth, or a forced answer."""
        yes, no = Fraction(self.yes), Fraction(self.no)
        return Task(1 - yes - no, Kind.TRUTH), Task(yes, Kind.SAY, "yes"), Task(no, Kind.SAY, "no")

    @property
    def yes_if_true(self) -> Fraction:
        """The chance that "no" is not forced."""
        return 1 - Fraction(self.no)

    @property
    def yes_if_false(self) -> Fraction:
        """The chance of a forced "yes"."""
        return Fraction(self.yes)
