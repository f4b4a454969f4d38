"""What charges cost and add up to: numbers that are read as the decimals that they are written as.

Until numbers were read so, a ledger's events held floats, which were rounded up as the floats they are. They
are still read and added up as such (`BinarySpent`); the first charge of decimals after them turns their sum
into the smallest decimals that are at least it.
"""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple, final

from sfumato import _check
from sfumato._wire import NUMBER, TEXT, Codec, Record, sequence
from sfumato.numerics.decimals import DecimalSum, decimal_add_up, decimal_up
from sfumato.numerics.rounding import add_up

__all__ = ["COST", "DECIMAL", "NOTHING", "BinarySpent", "Spent"]


class Spent(NamedTuple):
    """What a filter has added up, or adds for one charge: an amount in its unit, and a mass delta.

    Parameters
    ----------
    amount : float
        In the filter's unit: epsilon, rho, the square of mu, or a divergence.
    delta : float
        A probability.

    Examples
    --------
    >>> Spent(0.5, 1e-9).plus(Spent(0.25, 0.0))
    Spent(amount=0.75, delta=1e-09)
    """

    amount: float
    delta: float

    def plus(self, other: Spent) -> Spent:
        """Return the sum, rounded up.

        Parameters
        ----------
        other : Spent
            In the same unit.

        Returns
        -------
        Spent
        """
        if isinstance(other, BinarySpent):
            return other if self == NOTHING else self.plus(other.as_decimals())
        return Spent(decimal_add_up(self.amount, other.amount), decimal_add_up(self.delta, other.delta))


@final
class BinarySpent(Spent):
    """Numbers that mean the floats they are, which ledgers wrote before they were read as decimals."""

    __slots__ = ()

    def plus(self, other: Spent) -> Spent:
        """Return the sum, rounded up; with a charge of decimals, a sum of decimals."""
        if not isinstance(other, BinarySpent):
            return self.as_decimals().plus(other)
        return BinarySpent(add_up(self.amount, other.amount), add_up(self.delta, other.delta))

    def as_decimals(self) -> Spent:
        """Return the smallest numbers that are at least these as decimals."""
        return Spent(decimal_up(self.amount), decimal_up(self.delta))


NOTHING = Spent(0.0, 0.0)

_MOST_DIGITS: Final = 400
"""Characters of the longest number that is read."""


def _write_decimal(number: float) -> str:
    return str(number.exact) if isinstance(number, DecimalSum) else repr(float(number))


def _read_decimal(name: str, written: Any) -> float:
    text = TEXT.decode(name, written)
    number = math.inf if text == "inf" else _number(text)
    if number is None or _write_decimal(number) != text:
        _check.refuse_state(name, "be a decimal as text", "it is another", "pass what sfumato wrote")
    return number


def _number(text: str) -> float | None:
    """Return the number of at least 0 that a text says, None where it says none."""
    try:
        digits = Decimal(text if len(text) <= _MOST_DIGITS else "nan")
    except InvalidOperation:
        return None
    if not digits.is_finite() or digits.is_signed() or math.isinf(float(digits)):
        return None
    number = float(digits)
    return number if Decimal(repr(number)) == digits else DecimalSum(digits)


DECIMAL: Final[Codec[float]] = Codec(_write_decimal, _read_decimal)
"""A float, or a sum of them, as the text of the decimal that it stands for."""

_BINARY: Final = Record("an amount with its delta", BinarySpent, {"amount": NUMBER, "delta": NUMBER})
_DECIMAL: Final = Record("an amount with its delta", Spent, {"amount": DECIMAL, "delta": DECIMAL})


def _write_spent(spent: Spent) -> dict[str, Any]:
    return _BINARY.encode(spent) if isinstance(spent, BinarySpent) else _DECIMAL.encode(spent)


def _read_spent(name: str, written: Any) -> Spent:
    numbers = isinstance(written, dict) and type(written.get("delta")) in (int, float)
    return _BINARY.decode(name, written) if numbers else _DECIMAL.decode(name, written)


COST: Final[Codec[tuple[Spent, ...]]] = sequence(Codec(_write_spent, _read_spent))
"""What a charge adds to each filter, or what all have added up, in the order of the filters.

A text is the decimal that it says; a number is the float that it is read as.
"""
