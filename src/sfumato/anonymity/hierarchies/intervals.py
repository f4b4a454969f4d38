"""Numbers in intervals, and these in wider ones."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from sfumato import _check
from sfumato.anonymity.hierarchies.hierarchy import SUPPRESSED, GeneralizationHierarchy

__all__ = ["Intervals"]


@final
@dataclass(frozen=True, slots=True)
class Intervals:
    """Intervals of equal width, a width for each level, and ``*`` on top.

    An interval holds its lower end and not its upper one. Widths are exact decimals: 0.1 is a tenth.

    Parameters
    ----------
    widths : sequence of numbers
        Each a multiple of the one before.
    origin : number
        An end of some interval of each level.

    Raises
    ------
    ParameterError
        If a width is not positive, or no multiple of the one before.

    Examples
    --------
    >>> Intervals((5, 10)).hierarchy(["17", "23", "28"]).labels[1:]
    (('[15, 20)', '[20, 25)', '[25, 30)'), ('[10, 20)', '[20, 30)'), ('*',))
    """

    widths: Sequence[float]
    origin: float = 0

    def __post_init__(self) -> None:
        _check.finite("origin", self.origin)
        for width in self.widths:
            _check.positive("widths", width)
        exact = [_exact(width) for width in self.widths]
        for finer, coarser in itertools.pairwise(exact):
            if coarser == finer or (coarser / finer).denominator != 1:
                _check.refuse(
                    "widths", "each be a multiple of the one before", tuple(self.widths), "try (5, 10, 20)"
                )
        if not exact:
            _check.refuse("widths", "have at least one width", tuple(self.widths), "try (5, 10, 20)")

    def hierarchy(self, values: Sequence[str]) -> GeneralizationHierarchy:
        """Return a hierarchy of these values, in this order.

        Parameters
        ----------
        values : sequence of str

        Returns
        -------
        GeneralizationHierarchy

        Raises
        ------
        ParameterError
            If a value is no number.
        """
        numbers = [_number(value) for value in values]
        levels = [[self._interval(number, _exact(width)) for number in numbers] for width in self.widths]
        return GeneralizationHierarchy.from_rows(
            zip(values, *levels, [SUPPRESSED] * len(values), strict=True)
        )

    def _interval(self, number: Fraction, width: Fraction) -> str:
        origin = _exact(self.origin)
        lower = origin + (number - origin) // width * width
        return f"[{_text(lower)}, {_text(lower + width)})"


def _exact(number: float) -> Fraction:
    return Fraction(str(number))


def _number(value: str) -> Fraction:
    try:
        return Fraction(value.strip())
    except (ValueError, ZeroDivisionError):
        _check.refuse("intervals", "be of a column of numbers", value, "name another hierarchy for it")


def _text(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 else repr(float(number))
