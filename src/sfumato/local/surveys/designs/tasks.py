"""Describe who answers what: the tasks that chance assigns to respondents."""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum, unique
from fractions import Fraction
from typing import NamedTuple

__all__ = ["Kind", "Task"]


@unique
class Kind(Enum):
    """What a respondent is to do.

    Attributes
    ----------
    TRUTH
        Answer the sensitive question truly.
    OPPOSITE
        Give the opposite of the true answer.
    SAY
        Give one answer, whatever is true.
    OTHER
        Answer a harmless question truly.
    COMPARE
        Say whether the true answers to both questions are the same.
    ADD
        Add a number to the true one, and say the sum.
    MULTIPLY
        Multiply the true number by one, and say the product.

    Examples
    --------
    >>> from sfumato.local.surveys import Warner
    >>> [(task.kind.value, str(task.chance)) for task in Warner(truth="3/4").tasks]
    [('truth', '3/4'), ('opposite', '1/4')]
    """

    TRUTH = "truth"
    OPPOSITE = "opposite"
    SAY = "say"
    OTHER = "other"
    COMPARE = "compare"
    ADD = "add"
    MULTIPLY = "multiply"


class Task(NamedTuple):
    """One task, and how likely a respondent gets it.

    Parameters
    ----------
    chance : Fraction
        With which a respondent gets it; the chances of a design's tasks add up to 1.
    kind : Kind
        What is to be done.
    answer : hashable
        What is to be said, added or multiplied by; of `Kind.SAY`, `Kind.ADD` and `Kind.MULTIPLY`.

    Examples
    --------
    >>> from fractions import Fraction
    >>> Task(Fraction(1, 4), Kind.SAY, "yes").answer
    'yes'
    """

    chance: Fraction
    kind: Kind
    answer: Hashable = None
