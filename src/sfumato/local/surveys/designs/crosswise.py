"""The crosswise design: two statements, and only whether both are alike; one may be about a birthday."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from sfumato import _check
from sfumato.local.surveys.designs.binary import BinaryDesign
from sfumato.local.surveys.designs.probabilities import Chance, chance, plain
from sfumato.local.surveys.designs.tasks import Kind, Task

__all__ = ["Crosswise", "birthday_share"]

# Of four years: 29 February comes once.
_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LEAP: Final = (2, 29)
_CYCLE: Final = 4 * 365 + 1


def birthday_share(first: tuple[int, int], last: tuple[int, int]) -> Fraction:
    """Return the share of birthdays from one day to another, both included.

    Parameters
    ----------
    first, last : tuple of two ints
        Month and day; the last may come earlier in the year than the first, and the span goes over New Year.

    Returns
    -------
    Fraction
        For births distributed evenly over all days of four years. They are not quite: where the true share is
        known from statistics, state that.

    Examples
    --------
    >>> birthday_share((1, 1), (3, 31))
    Fraction(361, 1461)
    >>> birthday_share((12, 25), (1, 6))
    Fraction(52, 1461)
    """
    start, end = _index("first", first), _index("last", last)
    year = [(month, day) for month, days in enumerate(_DAYS, 1) for day in range(1, days + 1)]
    year.insert(year.index((3, 1)), _LEAP)
    inside = year[start : end + 1] if start <= end else year[start:] + year[: end + 1]
    return Fraction(sum(1 if day == _LEAP else 4 for day in inside), _CYCLE)


def _index(name: str, day: tuple[int, int]) -> int:
    """Return the index of a day in a leap year."""
    reported: object = day
    if (
        not isinstance(reported, tuple | list)
        or len(reported) != 2
        or any(isinstance(one, bool) or not isinstance(one, int) for one in reported)
    ):
        _check.refuse(name, "be a month and a day of it", day, "pass a month and a day such as (3, 31)")
    month, number = day
    longest = 29 if month == 2 else _DAYS[month - 1] if 1 <= month <= 12 else 0
    if not 1 <= number <= longest:
        _check.refuse(name, "be a month and a day of it", day, "pass a month and a day such as (3, 31)")
    return sum(_DAYS[: month - 1]) + (month > 2) + number - 1


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
