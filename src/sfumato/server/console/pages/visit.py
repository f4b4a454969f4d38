"""One request, as a screen sees it: who, with what parameters and fields."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, final

from sfumato import _check
from sfumato.server.console.access.identity import Identity

__all__ = ["Visit", "read_number"]

_DIGITS: Final = 18


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A request whose sender is known and may do what the screen does.

    Parameters
    ----------
    identity : Identity
        Who asks.
    path : mapping
        Parameters in the path, by name.
    query : mapping
        Parameters after the question mark.
    form : mapping
        Fields of a form that was sent; the first of each name.
    """

    identity: Identity
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)

    def number(self) -> int | None:
        """Return the number in the path; None where it is none, which is a page that does not exist."""
        found = self.path.get("number", "")
        plain = found.isascii() and found.isdigit() and len(found) <= _DIGITS and not found.startswith("0")
        return int(found) if plain else None

    def page(self) -> int:
        """Return which page of a long list is asked for, from 1."""
        found = self.query.get("page", "1")
        return int(found) if found.isascii() and found.isdigit() and 0 < len(found) < 10 and int(found) else 1

    def text(self, name: str) -> str:
        """Return a field of the form without space around it; "" where it was left empty."""
        return self.form.get(name, "").strip()

    def line(self, name: str, remedy: str) -> str:
        """Return a field that must be filled in."""
        found = self.text(name)
        if not found:
            _check.refuse_state(name, "be filled in", "it is empty", remedy)
        return found

    def amount(self, name: str, remedy: str) -> float | None:
        """Return a field that is a number of at least 0; None where it was left empty."""
        return read_number(name, self.text(name), remedy)


def read_number(name: str, text: str, remedy: str, *, minimum: float = 0.0) -> float | None:
    """Return the number that a text is; None where there is no text.

    Parameters
    ----------
    name : str
        Of the field, for the error.
    text : str
    remedy : str
    minimum : float
        ``-math.inf`` for any finite number.

    Raises
    ------
    ParameterError
        If it is no finite number, or below the minimum.
    """
    if not text:
        return None
    try:
        value = float(text) if text.isascii() else math.nan
    except ValueError:
        value = math.nan
    if not (value >= minimum and math.isfinite(value)):
        rule = "be a number" if math.isinf(minimum) else f"be a number of at least {minimum:g}"
        _check.refuse(name, rule, text, remedy)
    return value
