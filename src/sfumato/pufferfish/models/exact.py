"""Probabilities as exact rationals."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato import _check

__all__ = ["exact_number", "exact_probabilities"]


def exact_number(name: str, value: Any) -> Fraction:
    """Return a number as a rational; a float stands for its shortest decimal, so that 0.1 is a tenth.

    Parameters
    ----------
    name : str
    value : int, float, Fraction or numpy number

    Returns
    -------
    Fraction

    Raises
    ------
    ParameterError
        If it is no finite number.
    """
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, int | Fraction) and not isinstance(plain, bool):
        return Fraction(plain)
    if not isinstance(plain, float):
        _check.refuse_type(name, "be a number", value, "pass an int, a float or a Fraction")
    return Fraction(repr(_check.finite(name, plain)))


def exact_probabilities(name: str, values: Iterable[Any]) -> tuple[Fraction, ...]:
    """Return probabilities as rationals that sum to exactly one; a sum that is one to 1e-9 is divided out.

    Parameters
    ----------
    name : str
    values : iterable of int, float or Fraction

    Returns
    -------
    tuple of Fraction

    Raises
    ------
    ParameterError
        If one is negative or they do not sum to one.
    """
    exact = [exact_number(name, value) for value in values]
    total = sum(exact, Fraction(0))
    if any(value < 0 for value in exact) or abs(total - 1) > Fraction(1, 10**9):
        rule = "be non-negative and sum to one"
        _check.refuse_state(name, rule, "they do not", "divide by their sum")
    return tuple(value / total for value in exact)
