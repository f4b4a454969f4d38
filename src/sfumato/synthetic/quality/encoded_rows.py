"""Rows of a domain's cells, from all that is taken for a table: frames, labels, cells, released models."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato import _check
from sfumato.frames.arrow import as_arrow
from sfumato.mechanisms.base.release import Release
from sfumato.synthetic.domain.attributes import Codes, Ordered
from sfumato.synthetic.domain.column_types import is_text, plain_column
from sfumato.synthetic.domain.domain import TableDomain

__all__ = ["Rows", "encoded", "rows_of"]

Rows: TypeAlias = Any
"""An Arrow table of values or labels, or an array of cells."""

_REMEDY: Final = "pass a frame, or the cells that TableDomain.encode returned"


def rows_of(name: str, table: Any, rng: np.random.Generator | None = None) -> Rows:
    """Return the rows of a table as Arrow has them, or cells as they are.

    Parameters
    ----------
    name : str
        The table's, for messages.
    table : frame, array, or released model
        A model is a release with ``sample``; its rows are those of its ``table``.
    rng : numpy Generator, optional
        For rows that are drawn from a model.
    """
    if isinstance(table, np.ndarray):
        return table
    if isinstance(table, Release) and callable(getattr(table, "sample", None)):
        drawn: Any = table
        table = drawn.table(rng=rng)
    return as_arrow(name, table)


def encoded(name: str, domain: TableDomain, rows: Rows) -> Codes:
    """Return the cells of rows; cells themselves are taken as they are.

    Parameters
    ----------
    name : str
        The table's, for messages.
    domain : TableDomain
    rows : pyarrow.Table, or int64 array of shape (rows, columns)
        An ordered column may have its bins' labels instead of numbers or dates.

    Returns
    -------
    int64 array of shape (rows, columns)
        Of the rows in the domain.

    Raises
    ------
    ParameterError
        If it is not of the domain.
    """
    if isinstance(rows, np.ndarray):
        return _checked_cells(name, domain, rows)
    for place, column in enumerate(rows.schema.names):
        attribute = domain.get(column)
        if isinstance(attribute, Ordered) and is_text(rows.schema.field(place).type):
            rows = rows.set_column(place, column, _lower_edges(attribute, rows.column(place)))
    return domain.encode(rows)


def _checked_cells(name: str, domain: TableDomain, cells: Codes) -> Codes:
    if cells.dtype != np.int64 or cells.ndim != 2 or cells.shape[1] != len(domain):
        _check.refuse_type(name, f"have {len(domain)} columns of int64 cells", cells, _REMEDY)
    if len(cells) and not ((cells >= 0).all() and (cells < np.array(domain.sizes)).all()):
        _check.refuse_state(name, "hold cells of the domain", "some entry is none", _REMEDY)
    return cells


def _lower_edges(attribute: Ordered, labels: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the lower edge of each label's bin; NULL for what is no label."""
    edges = pa.array((attribute.edges or ())[:-1])
    known = pa.array([str(label) for label in attribute.labels[: len(edges)]], pa.large_string())
    return edges.take(
        pc.index_in(plain_column(labels).cast(pa.large_string()), value_set=known).combine_chunks()
    )
