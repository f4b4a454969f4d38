"""The two-coin design: a first coin asks for the truth, else a second one answers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from sfumato.local.surveys.designs.binary import BinaryDesign
from sfumato.local.surveys.designs.probabilities import Chance, chance, plain
from sfumato.local.surveys.designs.tasks import Kind, Task

__all__ = ["TwoCoins"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TwoCoins(BinaryDesign):
    r"""Toss a coin: on heads answer truly; on tails toss again, and say "yes" on heads, "no" on tails.

    Parameters
    ----------
    truth : Chance
        The chance that the first coin asks for the truth.
    yes : Chance
        The chance that the second coin says "yes".

    Notes
    -----
    With two fair coins "yes" has the chance :math:`1/4 + \theta/2`.

    Guarantee: with :math:`h` and :math:`y` for the two chances, :math:`\log\max\left(1 +
    \frac{h}{(1-h)y}, 1 + \frac{h}{(1-h)(1-y)}\right)`-DP for each answer under replace-one, exact: log 3 for
    fair coins.

    References
    ----------
    Warner (1965); Dwork, Roth (2014), "The algorithmic foundations of differential privacy", section 3.2.

    Examples
    --------
    >>> design = TwoCoins()
    >>> design.yes_rate(0.2), round(design.epsilon, 4)
    (0.35, 1.0986)
    """

    truth: Chance = Fraction(1, 2)
    yes: Chance = Fraction(1, 2)

    def __post_init__(self) -> None:
        object.__setattr__(self, "truth", plain(chance("truth", self.truth)))
        object.__setattr__(self, "yes", plain(chance("yes", self.yes)))
        self._check_transition("truth")

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The truth, or what the second coin says."""
        truth, yes = Fraction(self.truth), self.yes_if_false
        return Task(truth, Kind.TRUTH), Task(yes, Kind.SAY, "yes"), Task(1 - truth - yes, Kind.SAY, "no")

    @property
    def yes_if_true(self) -> Fraction:
        """The chance of the truth, or of a second coin that says "yes"."""
        return Fraction(self.truth) + self.yes_if_false

    @property
    def yes_if_false(self) -> Fraction:
        """The chance of a second coin that says "yes"."""
        return (1 - Fraction(self.truth)) * Fraction(self.yes)
