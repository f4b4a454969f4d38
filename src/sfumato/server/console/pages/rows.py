"""Rows of an answer as a page shows them.

>>> shown_rows(pa.table({"n": [4, 5, 6]}), 2)
[{'n': 4}, {'n': 5}]
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sfumato.queries.release.display import plain_values

__all__ = ["shown_rows"]


def shown_rows(table: pa.Table, most: int) -> list[dict[str, Any]]:
    """Return the first rows by name of column, whatever is in them.

    Parameters
    ----------
    table : pyarrow.Table
        Its columns have different names.
    most : int
        How many at most.

    Returns
    -------
    list of dict
    """
    first = table.slice(0, most)
    columns = [plain_values(column) for column in first.columns]
    return [dict(zip(first.column_names, row, strict=True)) for row in zip(*columns, strict=True)]
