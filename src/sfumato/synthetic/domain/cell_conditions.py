"""In which cells of a column a declared condition holds, and in which it does not."""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.synthetic.domain.attributes import Attribute, Categorical, Ordered
from sfumato.synthetic.domain.edges import edge_number
from sfumato.synthetic.domain.structural_zeros import labelled_cells

__all__ = ["condition_cells"]

_COMPARISON: Final = re.compile(r"\s*(<=|>=|<|>)\s*(\S+)\s*")
_REMEDY: Final = 'write a label, a list of labels, or a comparison such as "< 15"'

Cells = NDArray[np.bool_]


def condition_cells(name: str, attribute: Attribute, condition: Any) -> tuple[Cells, Cells]:
    """Return in which cells a condition holds for all values, and in which for none.

    Parameters
    ----------
    name : str
        The column's.
    attribute : Categorical or Ordered
    condition : label, list of labels, or comparison
        A comparison is a text such as ``"< 15"`` or ``">= 2020-01-01"``, for ordered columns and those of
        whole numbers.

    Returns
    -------
    tuple of two bool arrays of shape (cells,)
        The cell of NULL is in neither, as in SQL, unless None is listed; that of undeclared values is in
        neither of a comparison.

    Raises
    ------
    ParameterError
        If there is no such label, or a bin has values on both sides of a comparison.

    Examples
    --------
    >>> holds, fails = condition_cells("age", Ordered(0, 30, bins=3, missing=True), "< 10")
    >>> holds.tolist(), fails.tolist()
    ([True, False, False, False], [False, True, True, False])
    """
    found = _comparison(attribute, condition)
    if found is not None:
        return _compared(name, attribute, *found)
    listed = list(condition) if isinstance(condition, list | tuple | range) else [condition]
    if not listed:
        _check.refuse_type(f"condition on {name!r}", "have a label", condition, _REMEDY)
    holds = np.zeros(attribute.size, bool)
    holds[list(labelled_cells(f"condition on {name!r}", attribute, listed))] = True
    fails = ~holds
    if attribute.missing and None not in listed:
        fails[-1] = False
    return holds, fails


def _comparison(attribute: Attribute, condition: Any) -> tuple[str, str] | None:
    """Return the sign and the number or date of a comparison; None for what is a label."""
    texts = isinstance(attribute, Categorical) and isinstance(attribute.values[0], str)
    if texts or not isinstance(condition, str) or condition in attribute.labels:
        return None
    found = _COMPARISON.fullmatch(condition)
    return None if found is None else (found[1], found[2])


def _compared(name: str, attribute: Attribute, sign: str, text: str) -> tuple[Cells, Cells]:
    """Return in which cells all values, and no value, compare so."""
    bound = _bound(name, attribute, text)
    whole = isinstance(attribute, Categorical) or attribute.whole
    if isinstance(attribute, Categorical):
        lower = np.array([float(value) for value in attribute.values])
    else:
        lower = np.array(attribute.numbers[:-1])
        if not whole and (bound not in attribute.numbers[1:-1] or sign in ("<=", ">")):
            rule, found = "be < or >= an edge between two bins", f"it is {sign} {text}"
            _check.refuse_state(f"condition on {name!r}", rule, found, "declare an edge there")
    holds = {"<": lower < bound, "<=": lower <= bound, ">": lower > bound, ">=": lower >= bound}[sign]
    rest = np.zeros(attribute.size - len(lower), bool)
    return np.concatenate([holds, rest]), np.concatenate([~holds, rest])


def _bound(name: str, attribute: Attribute, text: str) -> float:
    """Return the number, or the date as one."""
    try:
        if isinstance(attribute, Ordered) and attribute.dated:
            return edge_number(dt.date.fromisoformat(text))
        if not math.isnan(number := float(text)):  # no value compares with NaN
            return number
    except ValueError:
        pass
    return _check.refuse(f"condition on {name!r}", "be about a number or date", text, _REMEDY)
