"""The crosswise design: two statements, and only whether both are alike."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from sfumato.local.surveys.designs.binary import BinaryDesign
from sfumato.local.surveys.designs.probabilities import Chance, chance, plain
from sfumato.local.surveys.designs.tasks import Kind, Task

__all__ = ["Crosswise"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Crosswise(BinaryDesign):
    r"""A respondent says whether two statements are both true or both false ("same"), or only one is true.

    Parameters
    ----------
    innocuous : Chance
        The share of people of whom the innocuous statement is true, not 1/2; such as 1/4 for a birthday of
        somebody in January, February or March.

    Notes
    -----
    The distribution of Warner's design without a device: "same" has the chance :math:`p` where the sensitive
    statement is true, else :math:`1 - p`.

    Guarantee: for each answer :math:`|\log(p/(1-p))|`-DP under replace-one, exact; to whoever does not know
    whether the innocuous statement is true of this respondent, who gives it the chance :math:`p`, whatever
    the sensitive trait. Somebody who knows the birthday learns everything: ask for that of a person whom no
    list names. An estimate rests on the chance as much as on the answers.

    References
    ----------
    Yu, Tian, Tang (2008), "Two new models for survey sampling with sensitive characteristic".

    Examples
    --------
    >>> design = Crosswise(innocuous="1/4")
    >>> round(design.estimate({"same": 650, "different": 350}).prevalence, 3)
    0.2
    """

    innocuous: Chance

    def __post_init__(self) -> None:
        object.__setattr__(self, "innocuous", plain(chance("innocuous", self.innocuous)))
        self._check_transition("innocuous")

    @property
    def answers(self) -> tuple[Hashable, ...]:
        """One of the two is true, or both or neither."""
        return ("different", "same")

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Everybody compares."""
        return (Task(Fraction(1), Kind.COMPARE),)

    @property
    def yes_if_true(self) -> Fraction:
        """The chance of the innocuous statement: both are true."""
        return Fraction(self.innocuous)

    @property
    def yes_if_false(self) -> Fraction:
        """The chance that it is false: neither is true."""
        return 1 - Fraction(self.innocuous)
