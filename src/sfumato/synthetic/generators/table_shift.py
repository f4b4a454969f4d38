"""How far one person moves a table of counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from sfumato.mechanisms.base.rational import floor_log2, power_of_two
from sfumato.privacy.neighboring import Neighboring

__all__ = ["TableShift", "short_number"]

_BITS: Final = 20


@final
@dataclass(frozen=True, slots=True)
class TableShift:
    """How far one person moves any table of counts, in whatever cells their rows are.

    Parameters
    ----------
    neighboring : Neighboring
    rows : int
        The most rows of a person.

    Notes
    -----
    A row is in one cell, so that one that is added or removed moves one count by 1, and one that is replaced
    two counts. The k rows of a person may all be in the same cell: they move the table by k times as much in
    either norm, by the triangle inequality.

    Examples
    --------
    >>> shift = TableShift(Neighboring.REPLACE_ONE, 3)
    >>> shift.l1, shift.l2_squared, round(float(shift.noise(Fraction(9))), 4)
    (6, 18, 1.0)
    """

    neighboring: Neighboring
    rows: int = 1

    @property
    def l1(self) -> int:
        """The largest sum of absolute changes."""
        return self.rows * self._cells

    @property
    def l2_squared(self) -> int:
        """The largest sum of squared changes."""
        return self.rows**2 * self._cells

    @property
    def _cells(self) -> int:
        return 1 if self.neighboring is Neighboring.ADD_REMOVE else 2

    def noise(self, rho: Fraction) -> Fraction:
        """Return the smallest noise of a table that costs at most so much: a short number, rounded up.

        Parameters
        ----------
        rho : Fraction

        Returns
        -------
        Fraction
        """
        return short_number(Fraction(math.sqrt(self.l2_squared / (2 * rho))), up=True)


def short_number(value: Fraction, *, up: bool) -> Fraction:
    """Return a number of 20 bits that is above another one, or not.

    Parameters
    ----------
    value : Fraction
    up : bool

    Returns
    -------
    Fraction
    """
    unit = power_of_two(floor_log2(value) - _BITS)
    return (math.floor(value / unit) + (1 if up else 0)) * unit
