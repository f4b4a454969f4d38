"""What some columns are given to be, as cells."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.synthetic.domain.attributes import Attribute, Label
from sfumato.synthetic.domain.domain import TableDomain

__all__ = ["Condition", "allowed_cells"]

Condition: TypeAlias = Label | dt.date | Sequence[Label | dt.date]


def allowed_cells(
    domain: TableDomain, given: Mapping[str, Condition]
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield the columns that are given something, and which cells of each are allowed.

    Parameters
    ----------
    domain : TableDomain
    given : mapping of str to label or list of labels

    Yields
    ------
    tuple of str and bool array of shape (cells,)

    Raises
    ------
    ParameterError
        If a column or value has no cell.

    Examples
    --------
    >>> domain = TableDomain(sex=["f", "m"])
    >>> [(name, cells.tolist()) for name, cells in allowed_cells(domain, {"sex": "m"})]
    [('sex', [False, True])]
    """
    if not isinstance(given, Mapping):
        _check.refuse_type("given", "be a mapping of columns to values", given, 'write {"sex": "f"}')
    for name, condition in given.items():
        attribute = domain[list(domain)[domain.index(name)]]
        listed = condition if isinstance(condition, list | tuple | range | set | frozenset) else [condition]
        cells = np.zeros(attribute.size, bool)
        for value in listed:
            cells[_cell(name, attribute, value)] = True
        if not cells.any():
            _check.refuse_state(f"given for {name!r}", "have a value", "it has none", "leave it out")
        yield name, cells


def _cell(name: str, attribute: Attribute, value: object) -> int:
    """Return the cell that has a label, or else that a value falls in."""
    for cell, label in enumerate(attribute.labels):
        if label == value and (isinstance(label, bool) is isinstance(value, bool)):
            return cell
    try:
        cell = int(attribute.encode(name, pa.chunked_array([pa.array([value])]))[0])
    except (ParameterError, pa.ArrowException, OverflowError, TypeError):
        cell = -1
    if cell < 0 or value is None:
        rule = f"be among the cells of {name!r}"
        _check.refuse("given", rule, value, f"pass one of the labels, such as {attribute.labels[0]!r}")
    return cell
