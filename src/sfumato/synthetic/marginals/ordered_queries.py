"""What may be asked of an ordered column instead of its cells: all its prefixes, or all its ranges."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.synthetic.domain.attributes import Attribute, Label, Ordered
from sfumato.synthetic.domain.edges import edge_number, edge_text

__all__ = ["MOST_ORDERED_CELLS", "CellRange", "OrderedQueries", "asked_ranges", "check_ordered"]

MOST_ORDERED_CELLS: Final = 1024
"""Cells of a column that is asked by prefixes or ranges: its noise is optimised in cubic time."""

_CLOSE: Final = 1e-9


class CellRange(NamedTuple):
    """Cells of an ordered column that follow one another, both ends included, and what they are called."""

    first: int
    last: int
    label: Label


class OrderedQueries(Enum):
    """What is asked of an ordered column; the cell for NULL, if it has one, is asked by itself."""

    PREFIXES = "prefixes"
    RANGES = "ranges"

    def count(self, attribute: Ordered) -> int:
        """Return how many questions these are.

        Parameters
        ----------
        attribute : Ordered

        Returns
        -------
        int
        """
        bins = attribute.size - attribute.missing
        return (bins if self is OrderedQueries.PREFIXES else bins * (bins + 1) // 2) + attribute.missing

    def gram(self, attribute: Ordered) -> NDArray[np.float64]:
        """Return in how many questions two cells are together, were they as many as the cells.

        Parameters
        ----------
        attribute : Ordered

        Returns
        -------
        float64 array of shape (cells, cells)

        Examples
        --------
        >>> OrderedQueries.PREFIXES.gram(Ordered(0, 3, bins=3)).tolist()
        [[3.0, 2.0, 1.0], [2.0, 2.0, 1.0], [1.0, 1.0, 1.0]]
        """
        size, bins = attribute.size, attribute.size - attribute.missing
        at = np.arange(bins, dtype=np.float64)
        together = bins - np.maximum.outer(at, at)
        if self is OrderedQueries.RANGES:
            together *= np.minimum.outer(at, at) + 1
        found = np.eye(size)
        found[:bins, :bins] = together
        return found * (size / self.count(attribute))

    def cells(self, name: str, attribute: Attribute) -> tuple[CellRange, ...]:
        """Return the questions: prefixes by their end, ranges by their start and end.

        Parameters
        ----------
        name : str
            The column's, for messages.
        attribute : Ordered

        Returns
        -------
        tuple of CellRange
        """
        ordered = check_ordered(name, attribute)
        bins = ordered.size - ordered.missing
        starts = range(1 if self is OrderedQueries.PREFIXES else bins)
        found = [_named(ordered, first, last) for first in starts for last in range(first, bins)]
        return (*found, *([CellRange(bins, bins, None)] if ordered.missing else []))


def check_ordered(name: str, attribute: Attribute) -> Ordered:
    """Return an attribute that may be asked by prefixes and ranges, and refuse another.

    Parameters
    ----------
    name : str
    attribute : Categorical or Ordered

    Returns
    -------
    Ordered

    Raises
    ------
    ParameterError
        If its cells have no order, or are too many.
    """
    if not isinstance(attribute, Ordered):
        found, remedy = "it is of categories", "declare it as Ordered(...) or Ordered.integers(...)"
        _check.refuse_state(f"column {name!r}", "be ordered for prefixes and ranges", found, remedy)
    if attribute.size > MOST_ORDERED_CELLS:
        rule, found = f"have at most {MOST_ORDERED_CELLS} cells for prefixes and ranges", str(attribute.size)
        _check.refuse_state(f"column {name!r}", rule, f"it has {found}", "take wider bins")
    return attribute


def asked_ranges(name: str, attribute: Attribute, between: object) -> tuple[CellRange, ...]:
    """Return ranges by their ends: of whole numbers the first and the last, else from edge to edge.

    Parameters
    ----------
    name : str
    attribute : Ordered
    between : sequence of pairs
        Numbers or dates.

    Returns
    -------
    tuple of CellRange

    Raises
    ------
    ParameterError
        If an end is no edge of a cell, or not before the other.

    Examples
    --------
    >>> asked_ranges("age", Ordered.integers(0, 9), [(2, 4)])
    (CellRange(first=2, last=4, label='2 to 4'),)
    >>> asked_ranges("pay", Ordered(0, 100, bins=4), [(25, 75)])
    (CellRange(first=1, last=2, label='[25, 75)'),)
    """
    ordered = check_ordered(name, attribute)
    remedy = 'write between={"age": [(18, 64), (65, 90)]}'
    if isinstance(between, str) or not isinstance(between, Sequence) or not between:
        _check.refuse_type(f"between of {name!r}", "be a list of pairs", between, remedy)
    found = []
    for pair in between:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            _check.refuse_type(f"between of {name!r}", "be a list of pairs", pair, remedy)
        lower, upper = (_place(ordered, end) for end in pair)
        upper -= not ordered.whole
        if not 0 <= lower <= upper < ordered.size - ordered.missing:
            rule = "be the first and last numbers" if ordered.whole else "be two edges of its bins, rising"
            _check.refuse(f"between of {name!r}", rule, tuple(pair), "see domain[...].edges")
        found.append(_named(ordered, lower, upper))
    return tuple(found)


def _place(attribute: Ordered, end: Any) -> int:
    """Return which edge that is, -1 if it is none: numbers are compared to nine digits."""
    given = isinstance(end, dt.date) if attribute.dated else isinstance(end, int | float)
    if not given or isinstance(end, bool | dt.datetime) or not math.isfinite(edge_number(end)):
        return -1
    edges, number = np.array(attribute.numbers), edge_number(end)
    place = int(np.abs(edges - number).argmin())
    width = min(np.diff(edges)[max(0, place - 1) : place + 1])
    return place if abs(edges[place] - number) <= _CLOSE * width else -1


def _named(attribute: Ordered, first: int, last: int) -> CellRange:
    edges = tuple(attribute.edges or ())
    if attribute.whole:
        whole = int(edges[first])
        return CellRange(first, last, str(whole) if first == last else f"{whole} to {int(edges[last])}")
    end = "]" if last == len(edges) - 2 else ")"
    return CellRange(first, last, f"[{edge_text(edges[first])}, {edge_text(edges[last + 1])}{end}")
