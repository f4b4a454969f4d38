"""Designs by randomized response: Warner's, forced response, and two coins.

By chance a respondent answers the sensitive question, its opposite, or what the sheet says.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from sfumato import _check
from sfumato.local.surveys.designs.binary import BinaryDesign
from sfumato.local.surveys.designs.probabilities import Chance, chance, plain
from sfumato.local.surveys.designs.tasks import Kind, Task

__all__ = ["ForcedResponse", "TwoCoins", "Warner"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Warner(BinaryDesign):
    r"""By chance a respondent answers whether the sensitive statement is true, or whether its opposite is.

    Parameters
    ----------
    truth : Chance
        The chance of the sensitive statement, not 1/2. Nobody but the respondent sees which it was.

    Notes
    -----
    "Yes" has the chance :math:`p` where the statement is true, else :math:`1 - p`.

    Guarantee: for each answer :math:`|\log(p/(1-p))|`-DP under replace-one, exact.

    References
    ----------
    Warner (1965), "Randomized response: a survey technique for eliminating evasive answer bias".

    Examples
    --------
    >>> design = Warner(truth="3/4")
    >>> round(design.epsilon, 4), design.estimate({"yes": 400, "no": 600}).prevalence
    (1.0986, 0.3)
    """

    truth: Chance

    def __post_init__(self) -> None:
        object.__setattr__(self, "truth", plain(chance("truth", self.truth)))
        self._check_transition("truth")

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The truth, or its opposite."""
        return Task(self.yes_if_true, Kind.TRUTH), Task(self.yes_if_false, Kind.OPPOSITE)

    @property
    def yes_if_true(self) -> Fraction:
        """The chance of the sensitive statement."""
        return Fraction(self.truth)

    @property
    def yes_if_false(self) -> Fraction:
        """The chance of its opposite."""
        return 1 - Fraction(self.truth)


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
            _check.refuse("no", f"be below {1 - yes}", self.no, "raise it: some answers have to be true")
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
