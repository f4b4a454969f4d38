"""Edges of bins: numbers or dates that rise."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np

from sfumato import _check

__all__ = ["MOST_CELLS", "Edge", "check_ends", "edge_number", "edge_text", "rising_edges"]

Edge: TypeAlias = float | dt.date

MOST_CELLS: Final = 1 << 20
"""Cells that a column may have."""

_WIDEST: Final = 1e308


def check_ends(lower: object, upper: object) -> None:
    """Refuse ends that do not rise, or whose distance is beyond floats."""
    first, last = _check.finite("lower", lower), _check.finite("upper", upper)
    if not first < last <= first + _WIDEST:
        _check.refuse("upper", "be above lower, by at most 1e308", upper, "exchange them, or rescale")


def rising_edges(edges: object) -> tuple[Any, ...]:
    """Return edges as given, which must be numbers or dates that rise."""
    if isinstance(edges, str | bytes) or not isinstance(edges, Sequence | np.ndarray) or len(edges) < 2:
        _check.refuse_type("edges", "be a list of at least two numbers or dates", edges, "pass [0, 10, 20]")
    given = tuple(edges)
    dated = all(isinstance(e, dt.date) and not isinstance(e, dt.datetime) for e in given)
    given, rises = (given, all(a < b for a, b in pairwise(given))) if dated else _numbers(given)
    if len(given) - 1 > MOST_CELLS or not rises:
        rule = f"rise, and be those of at most {MOST_CELLS} bins"
        _check.refuse_state("edges", rule, "they do not", "sort them and leave out what is twice in it")
    return given


def _numbers(given: tuple[object, ...]) -> tuple[tuple[float, ...], bool]:
    """Return numbers as floats, and whether they rise."""
    try:
        plain = np.array(given, np.float64) if set(map(type, given)) <= {int, float} else None
    except OverflowError:  # a whole number beyond floats, which is refused by name
        plain = None
    if plain is None or not np.isfinite(plain).all():
        plain = np.array([_check.finite("edges", edge) for edge in given])
    return tuple(plain.tolist()), bool((plain[:-1] < plain[1:]).all())


def edge_number(edge: Edge) -> float:
    """Return an edge as a number; a date in days since 1970."""
    return float((edge - dt.date(1970, 1, 1)).days) if isinstance(edge, dt.date) else edge


def edge_text(edge: Edge) -> str:
    """Return an edge as a text of a label."""
    return edge.isoformat() if isinstance(edge, dt.date) else f"{edge:.10g}"
