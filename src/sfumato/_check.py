"""Checks of parameters, whose messages all name the parameter, the rule, the value and a remedy."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import NoReturn

from sfumato.errors import ParameterError

__all__ = [
    "finite",
    "fraction",
    "instance",
    "integer",
    "ledger",
    "non_negative",
    "positive",
    "probability",
    "refuse",
    "refuse_state",
    "refuse_type",
    "share",
    "unit_interval",
]


def refuse(
    name: str, rule: str, value: object, remedy: str = "", *, error: type[ParameterError] = ParameterError
) -> NoReturn:
    """Raise the one-shape error: ``name must rule, got value; remedy``.

    The value is the caller's own, shown as Python writes it; a value that may be data, or is long, is
    refused by `refuse_type`, and what no single value says by `refuse_state`.
    """
    raise error(_message(name, rule, f"got {value!r}", remedy))


def refuse_type(
    name: str, rule: str, value: object, remedy: str = "", *, error: type[ParameterError] = ParameterError
) -> NoReturn:
    """Raise ``name must rule, got a value of type X; remedy``, with nothing of the value in it.

    An array is described by its entries' type and how many axes it has; its shape may be how many people
    there are.
    """
    found = f"got a value of type {type(value).__name__}"
    if hasattr(value, "dtype") and hasattr(value, "ndim"):
        found += f", of {value.dtype} with {value.ndim} {'axis' if value.ndim == 1 else 'axes'}"
    raise error(_message(name, rule, found, remedy))


def refuse_state(
    name: str, rule: str, found: str, remedy: str = "", *, error: type[ParameterError] = ParameterError
) -> NoReturn:
    """Raise ``name must rule, but found; remedy``, where ``found`` is a clause: ``it was used before``."""
    raise error(_message(name, rule, f"but {found}", remedy))


def _message(name: str, rule: str, found: str, remedy: str) -> str:
    return f"{name} must {rule}, {found}" + (f"; {remedy}" if remedy else "")


def _number(name: str, value: object, rule: str, remedy: str, accept: Callable[[float], bool]) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        refuse(name, rule, value, remedy)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isnan(number) or not accept(number):
        refuse(name, rule, value, remedy)
    return number


def finite(name: str, value: object, remedy: str = "") -> float:
    """Return ``value`` as a float, or refuse what is not a finite real number."""
    return _number(name, value, "be a finite number", remedy, math.isfinite)


def positive(name: str, value: object, remedy: str = "") -> float:
    """Return ``value`` as a float, or refuse what is not positive and finite."""
    return _number(name, value, "be positive and finite", remedy, lambda x: 0 < x < math.inf)


def non_negative(name: str, value: object, remedy: str = "") -> float:
    """Return ``value`` as a float, or refuse what is negative or not finite."""
    return _number(name, value, "be non-negative and finite", remedy, lambda x: 0 <= x < math.inf)


def at_least_zero(name: str, value: object, remedy: str = "") -> float:
    """Return ``value`` as a float that may be infinite, or refuse what is negative."""
    return _number(name, value, "be non-negative", remedy, lambda x: x >= 0)


def probability(name: str, value: object, remedy: str = "") -> float:
    """Return ``value`` as a float in [0, 1)."""
    return _number(name, value, "be in [0, 1)", remedy, lambda x: 0 <= x < 1)


def unit_interval(name: str, value: object, remedy: str = "") -> float:
    """Return ``value`` as a float strictly between 0 and 1."""
    return _number(name, value, "be strictly between 0 and 1", remedy, lambda x: 0 < x < 1)


def share(name: str, value: object, remedy: str = "") -> float:
    """Return ``value`` as a float from 0 to 1, both included."""
    return _number(name, value, "be from 0 to 1", remedy, lambda x: 0 <= x <= 1)


def integer(name: str, value: object, *, minimum: int = 0, remedy: str = "") -> int:
    """Return ``value`` as an int of at least ``minimum``; booleans and floats are refused."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < minimum:
        refuse(name, f"be an integer of at least {minimum}", value, remedy)
    return int(value)


def fraction(name: str, value: object, remedy: str = "") -> Fraction:
    """Return a positive finite int, float or Fraction as the exact rational it is."""
    if not isinstance(value, bool) and isinstance(value, Rational) and int(value.numerator) > 0:
        return Fraction(int(value.numerator), int(value.denominator))
    return Fraction(positive(name, value, remedy))


def instance(name: str, value: object, kind: type, remedy: str = "") -> None:
    """Refuse what is no instance of a class; the message names its type only."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        refuse_type(name, f"be {article} {kind.__name__}", value, remedy)


def ledger(value: object) -> None:
    """Refuse what cannot be charged, such as a ledger's path; None means that there is no ledger.

    Parameters
    ----------
    value : Ledger or None
        What a caller passed as ``ledger``.

    Raises
    ------
    ParameterError
        If it has no method ``charge``.

    Examples
    --------
    >>> ledger(None)
    """
    if value is not None and not callable(getattr(value, "charge", None)):
        refuse("ledger", "be an open ledger", value, "pass Ledger.open(...) or session.ledger")
