"""Expressions over released tables, computed by an empty DuckDB with the same total functions as rows.

No raw data is near: the only table in reach is the released one. What has no value (a division by zero, an
overflow) is NULL, and no released number can make it fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import duckdb
import pyarrow as pa

from sfumato.queries.engines.compilation.expressions import TypedSql, render
from sfumato.queries.engines.duckdb.dialect import DUCKDB
from sfumato.queries.plan.query import ColumnType, Expression
from sfumato.queries.plan.schema import ARROW_TYPES

__all__ = ["column_types", "evaluate"]


_CONFIG: Final[dict[str, str | bool | int | float | list[str]]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "threads": "1",
}


def column_types(table: pa.Table) -> dict[str, ColumnType]:
    """Return the types of a released table's columns; those that no expression can use are left out.

    Examples
    --------
    >>> column_types(pa.table({"state": ["CA"], "n": [3]}))
    {'state': <ColumnType.TEXT: 'STRING'>, 'n': <ColumnType.INTEGER: 'INT64'>}
    """
    # The digits of a NUMERIC are released as a text.
    kinds = {arrow: type_ for type_, arrow in ARROW_TYPES.items() if type_ is not ColumnType.DECIMAL}
    return {field.name: kinds[field.type] for field in table.schema if field.type in kinds}


def evaluate(table: pa.Table, expressions: Sequence[Expression]) -> list[pa.ChunkedArray]:
    """Compute expressions over the columns of a table, row by row.

    Parameters
    ----------
    table : pyarrow.Table
        Released columns in the types of :func:`column_types`.
    expressions : sequence of Expression
        Their columns are those of the table.

    Returns
    -------
    list of pyarrow.ChunkedArray
        One for each expression, in the order of the rows.

    Examples
    --------
    >>> from sfumato.queries.release.postprocessing import parsed
    >>> total = parsed("`a` / `b`", {"a": ColumnType.INTEGER, "b": ColumnType.INTEGER})
    >>> evaluate(pa.table({"a": [3, 1], "b": [2, 0]}), [total])[0].to_pylist()
    [1.5, None]
    """
    if not expressions:
        return []
    types = column_types(table)
    place = {name: f"c{i}" for i, name in enumerate(table.column_names)}
    columns = {name.casefold(): TypedSql(place[name], type_) for name, type_ in types.items()}
    below = ", ".join(f"{render(e, columns, DUCKDB)} AS x{i}" for i, e in enumerate(expressions))
    above = ", ".join(f"{DUCKDB.canonical(f'x{i}', e.type)} AS p{i}" for i, e in enumerate(expressions))
    numbered = table.rename_columns(list(place.values())).append_column("i", pa.array(range(table.num_rows)))
    with duckdb.connect(":memory:", config=_CONFIG) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("answer", numbered)
        made = connection.sql(f"SELECT {above} FROM (SELECT {below}, i FROM answer) ORDER BY i")
        found = made.to_arrow_table()
    return [found[f"p{i}"].cast(ARROW_TYPES[e.type]) for i, e in enumerate(expressions)]
