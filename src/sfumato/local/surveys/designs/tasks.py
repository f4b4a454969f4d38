"""Who answers what: the tasks that chance gives to respondents."""

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
    """

    TRUTH = "truth"
    OPPOSITE = "opposite"
    SAY = "say"
    OTHER = "other"
    COMPARE = "compare"


class Task(NamedTuple):
    """One task.

    Attributes
    ----------
    chance : Fraction
        With which a respondent gets it; the chances of a design's tasks add up to 1.
    kind : Kind
    answer : hashable
        What is to be said; of `Kind.SAY` alone.
    """

    chance: Fraction
    kind: Kind
    answer: Hashable = None
