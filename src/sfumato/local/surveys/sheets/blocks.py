"""What a page is made of, whatever it is printed as."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

__all__ = [
    "Bars",
    "Blank",
    "Block",
    "Boxes",
    "Heading",
    "Listed",
    "Page",
    "Spinner",
    "Steps",
    "Table",
    "Text",
]


@final
@dataclass(frozen=True, slots=True)
class Heading:
    """A heading within the page."""

    text: str


@final
@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph; a loud one stands out, a formula retains its spaces."""

    text: str
    loud: bool = False
    formula: bool = False


@final
@dataclass(frozen=True, slots=True)
class Steps:
    """What is done, one thing after another."""

    items: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class Listed:
    """Sentences in no order."""

    items: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class Table:
    """Rows under their headings."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@final
@dataclass(frozen=True, slots=True)
class Boxes:
    """Boxes to tick."""

    labels: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class Blank:
    """A place to write a number in."""


@final
@dataclass(frozen=True, slots=True)
class Bars:
    """Estimates as bars with their intervals, between 0 and a whole; the numbers stand in a table beside.

    Each row has a name, an estimate, and the lower and the upper end.
    """

    title: str
    rows: tuple[tuple[str, float, float, float], ...]
    bounds: tuple[float, float]


@final
@dataclass(frozen=True, slots=True)
class Spinner:
    """A circle of areas, each with its letter and its part of the whole."""

    areas: tuple[tuple[str, Fraction], ...]


Block: TypeAlias = Heading | Text | Steps | Listed | Table | Bars | Boxes | Blank | Spinner


@final
@dataclass(frozen=True, slots=True)
class Page:
    """A title, and what stands under it."""

    title: str
    blocks: tuple[Block, ...]
