"""The check of the scale of sampled noise: an exact rational within limits."""

from __future__ import annotations

from fractions import Fraction

from sfumato._check import fraction, refuse

__all__ = ["LARGEST_SCALE", "exact_scale"]

LARGEST_SCALE = 2**40
"""Largest scale and standard deviation that are drawn: beyond it a value could leave 64 bits."""


def exact_scale(name: str, value: object) -> Fraction:
    """Return a scale as the exact rational it is, or refuse what is not positive or is above 2^40.

    Parameters
    ----------
    name : str
        Of the parameter, for the message.
    value : object
        What was passed.

    Returns
    -------
    Fraction
        Positive, at most `LARGEST_SCALE`.

    Raises
    ------
    ParameterError
        If it is anything else.

    Examples
    --------
    >>> exact_scale("scale", 0.1) == 0.1
    True
    """
    exact = fraction(name, value, "pass epsilon= to a mechanism to have it chosen")
    if exact > LARGEST_SCALE:
        refuse(name, "be at most 2**40", value, "measure the value in larger steps")
    return exact
