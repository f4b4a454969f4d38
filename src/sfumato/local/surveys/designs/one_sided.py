"""Designs in which one answer is certain where the sensitive thing is true: Mangat's and the triangular one.

The other answer then shows for certain that it is false, so that no finite epsilon bounds what it reveals.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from sfumato.local.surveys.designs.binary import BinaryDesign
from sfumato.local.surveys.designs.probabilities import Chance, chance, plain
from sfumato.local.surveys.designs.tasks import Kind, Task

__all__ = ["Mangat", "Triangular"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Mangat(BinaryDesign):
    r"""Who has the trait says "yes"; who has not says "no" or, by chance, "yes".

    Parameters
    ----------
    truth : Chance
        The chance with which somebody without the trait says "no".

    Notes
    -----
    "Yes" has the chance 1 where the thing is true, else :math:`1 - p`. "No" is never said by somebody of whom
    it is true: it shows that it is false, and the epsilon is infinite. What "yes" reveals is bounded: it
    multiplies the odds by :math:`1/(1-p)`, and `risk` has both.

    References
    ----------
    Mangat (1994), "An improved randomized response strategy".

    Examples
    --------
    >>> design = Mangat(truth="2/3")
    >>> round(design.estimate({"yes": 400, "no": 600}).prevalence, 6), design.epsilon
    (0.1, inf)
    >>> design.risk("1/10").odds["yes"], design.risk("1/10").posterior["no"]
    (Fraction(3, 1), Fraction(0, 1))
    """

    truth: Chance

    def __post_init__(self) -> None:
        object.__setattr__(self, "truth", plain(chance("truth", self.truth)))
        self._check_transition("truth", certain=True)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The truth, or "yes": so somebody with the trait says "yes" in either case."""
        truth = Fraction(self.truth)
        return Task(truth, Kind.TRUTH), Task(1 - truth, Kind.SAY, "yes")

    @property
    def yes_if_true(self) -> Fraction:
        """Certainty."""
        return Fraction(1)

    @property
    def yes_if_false(self) -> Fraction:
        """The chance of "yes" in spite of the truth."""
        return 1 - Fraction(self.truth)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Triangular(BinaryDesign):
    r"""A respondent ticks the circle if two statements are both false, else the triangle.

    Parameters
    ----------
    innocuous : Chance
        The share of people of whom the innocuous statement is true, independently of the sensitive one.

    Notes
    -----
    The triangle has the chance 1 where the sensitive statement is true, else that of the innocuous one. The
    circle shows that both are false, so the epsilon is infinite; the triangle multiplies the odds by the
    inverse of that chance, to whoever does not know this respondent's innocuous statement.

    References
    ----------
    Yu, Tian, Tang (2008), "Two new models for survey sampling with sensitive characteristic".

    Examples
    --------
    >>> design = Triangular(innocuous="1/4")
    >>> round(design.estimate({"triangle": 400, "circle": 600}).prevalence, 6), design.epsilon
    (0.2, inf)
    """

    innocuous: Chance

    def __post_init__(self) -> None:
        object.__setattr__(self, "innocuous", plain(chance("innocuous", self.innocuous)))
        self._check_transition("innocuous", certain=True)

    @property
    def answers(self) -> tuple[Hashable, ...]:
        """Both are false, or at least one is true."""
        return ("circle", "triangle")

    @property
    def tasks(self) -> tuple[Task, ...]:
        """None: everybody looks at both statements."""
        return ()

    @property
    def yes_if_true(self) -> Fraction:
        """Certainty."""
        return Fraction(1)

    @property
    def yes_if_false(self) -> Fraction:
        """The chance of the innocuous statement."""
        return Fraction(self.innocuous)
