"""Tables of counts as rows, one for each cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.synthetic.domain.attributes import Label

__all__ = ["CountedTable", "cell_rows"]

CountedTable: TypeAlias = tuple[Sequence[str], Sequence[Sequence[Label]], NDArray[np.float64], Any]
"""Columns, the labels of each, counts with an axis for each, and their standard deviations, if known."""


def cell_rows(tables: Iterable[CountedTable]) -> pa.Table:
    """Return the cells of tables, a row for each.

    Parameters
    ----------
    tables : iterable of tuple

    Returns
    -------
    pyarrow.Table
        ``columns`` and ``cell``, lists of the table's columns and of the cell's labels as texts, ``count``
        and ``stddev``.

    Examples
    --------
    >>> cell_rows([(["sex"], [["f", None]], np.array([3.0, 1.0]), 2.0)]).to_pylist()[1]
    {'columns': ['sex'], 'cell': [None], 'count': 1.0, 'stddev': 2.0}
    """
    rows = []
    for columns, labels, counts, stddev in tables:
        texts = [[None if label is None else str(label) for label in each] for each in labels]
        for cell, count in np.ndenumerate(counts):
            named = [text[at] for text, at in zip(texts, cell, strict=True)]
            off = stddev[cell] if isinstance(stddev, np.ndarray) else stddev
            rows.append({"columns": list(columns), "cell": named, "count": count, "stddev": off})
    words = pa.list_(pa.string())
    kinds = [("columns", words), ("cell", words), ("count", pa.float64()), ("stddev", pa.float64())]
    return pa.Table.from_pylist(rows, pa.schema(kinds))
