"""Probabilities of a survey's coins, dice and spinners, as the rationals they are."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final, TypeAlias

from sfumato import _check
from sfumato.mechanisms.base.rational import plain

__all__ = ["Chance", "chance", "plain", "several"]

Chance: TypeAlias = int | float | Fraction | str
"""A probability: a number, taken as the exact rational it is, or a text such as ``"2/3"`` or ``"0.7"``."""

_FORM: Final = re.compile(r"\s*\d{1,18}(\.\d{1,18})?(\s*/\s*\d{1,18})?\s*")
_MAX: Final = 1 << 40


def chance(name: str, value: Chance) -> Fraction:
    """Return a probability strictly between 0 and 1 as a fraction.

    Parameters
    ----------
    name : str
        Of the parameter, for the error.
    value : int, float, Fraction or str
        A text is read as a decimal or a quotient: ``"0.7"`` is 7/10, as the float 0.7 is not.

    Raises
    ------
    ParameterError
        If it is no such probability, or one with a denominator above 2**40, which is no float's of use.

    Examples
    --------
    >>> chance("truth", "2/3"), chance("truth", "0.7"), chance("truth", 0.25)
    (Fraction(2, 3), Fraction(7, 10), Fraction(1, 4))
    """
    rule = "be strictly between 0 and 1"
    if isinstance(value, str):
        above, bar, below = value.partition("/")
        if not _FORM.fullmatch(value) or (bar and not int(below)):
            _check.refuse(name, rule, value, "write it as 2/3 or 0.7")
        found = Fraction(above.strip()) / (int(below) if bar else 1)
    else:
        found = _check.fraction(name, value, "choose one in between: a chance of 0 or 1 hides nothing")
    if not 0 < found < 1:
        _check.refuse(name, rule, value, "choose one in between: a chance of 0 or 1 hides nothing")
    if found.denominator > _MAX:
        # Decimal floats are binary fractions; what is meant is the decimal.
        remedy = f'pass a Fraction or a text, such as "{found.limit_denominator(1000)}"'
        _check.refuse(name, "have a denominator of at most 2**40", value, remedy)
    return found


def several(name: str, values: object) -> tuple[Fraction, ...]:
    """Return several probabilities, each strictly between 0 and 1."""
    if isinstance(values, str) or not isinstance(values, list | tuple):
        _check.refuse_type(name, "be a list of probabilities", values, "pass a list")
    return tuple(chance(name, value) for value in values)
