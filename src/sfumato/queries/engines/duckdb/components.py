"""Connected components as units: who shares a user, a device, or another mark is one unit.

Every row carries several marks, such as a user and a device. Two rows belong together if they share a mark,
and so do rows that a chain of such rows connects. The marks of one table of rows are the nodes of a graph,
each row connects its own, and the unit of a row is the component that its marks lie in.

Notes
-----
Guarantee: let T be the tables, C a component and T' the tables without the rows of C. Then the components of
T' are those of T but C, each with the same rows and the same name. For the graph of T' is that of T without
the marks that only rows of C carry, and these are all the marks of C: a row that carries one of them is a row
of C. So no edge of another component is lost, and none is new. A component is named by the smallest of its
own marks, which no other component changes. What bounds the contribution of a unit thus holds for a
component, under add/remove of one: its rows and their name go, and all other rows keep theirs. It says
nothing of the removal of one user where others share their devices: they are one unit, and protected
together.

A mark that is NULL is none: it connects nothing, and a row without any mark has a NULL unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy

from sfumato.queries.engines.dialects.base import StoredColumn, StoredTable
from sfumato.queries.engines.duckdb.dialect import DUCKDB

__all__ = ["UNIT", "add_components", "connected"]

UNIT = "privacy_unit"
"""The column of the components' names."""

Nodes = npt.NDArray[np.int64]


def connected(first: Nodes, second: Nodes, count: int) -> Nodes:
    """Return for each node the smallest one that it is connected with.

    Parameters
    ----------
    first, second : (edges,) int64
        The ends of each edge.
    count : int
        The nodes are 0 to ``count - 1``.

    Returns
    -------
    (count,) int64
    """
    graph = scipy.sparse.coo_array((np.ones(len(first)), (first, second)), shape=(count, count))
    _, labels = scipy.sparse.csgraph.connected_components(graph, directed=False)
    _, smallest = np.unique(labels, return_index=True)
    return smallest[labels].astype(np.int64)


def add_components(
    connection: duckdb.DuckDBPyConnection,
    tables: Mapping[str, StoredTable],
    columns: Mapping[str, tuple[str, ...]],
) -> dict[str, StoredTable]:
    """Return the tables with a column more: the name of each row's component, over all tables together.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Where the tables lie, and where what maps marks to components is made.
    tables : mapping of str to StoredTable
    columns : mapping of str to tuple of str
        The columns of the marks, table by table: of one number, and of one kind of mark in each position.

    Returns
    -------
    dict of str to StoredTable
        The tables of ``columns``, as views.
    """
    indices = range(len(next(iter(columns.values()))))
    texts = {name: [_text(tables[name], mark) for mark in marks] for name, marks in columns.items()}
    sizes = [_number_marks(connection, index, tables, texts) for index in indices]
    bases = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    first, second = _edges(connection, tables, texts, bases)
    _name_components(connection, connected(first, second, int(bases[-1])), bases)
    return {name: _with_unit(connection, tables[name], texts[name]) for name in columns}


def _text(table: StoredTable, mark: str) -> str:
    """Return a mark as a text; that of a number is the same whatever its type in another table."""
    stored = next(column.stored for column in table.columns if column.name == mark)
    return DUCKDB.digits(f"r.{DUCKDB.identifier(mark)}", stored)


def _number_marks(
    connection: duckdb.DuckDBPyConnection,
    index: int,
    tables: Mapping[str, StoredTable],
    texts: Mapping[str, list[str]],
) -> int:
    """Make ``marks_0`` and so on: each mark of a position, numbered from 0 in order; return how many."""
    marks = " UNION ".join(
        f"SELECT {of[index]} AS mark FROM {tables[name].name} AS r" for name, of in texts.items()
    )
    number = "CAST(row_number() OVER (ORDER BY mark) - 1 AS BIGINT) AS node"
    connection.execute(
        f"CREATE TEMP TABLE marks_{index} AS SELECT mark, {number} FROM "
        f"(SELECT DISTINCT mark FROM ({marks}) AS r WHERE mark IS NOT NULL) AS r"
    )
    found = connection.execute(f"SELECT count(*) FROM marks_{index}").fetchall()
    return int(found[0][0])


def _edges(
    connection: duckdb.DuckDBPyConnection,
    tables: Mapping[str, StoredTable],
    texts: Mapping[str, list[str]],
    bases: Nodes,
) -> tuple[Nodes, Nodes]:
    """Return the ends of the edges: each pair of marks that a row has, once for each table."""
    ends: tuple[list[Nodes], list[Nodes]] = ([], [])
    for name, of in texts.items():
        for one, other in combinations(range(len(of)), 2):
            found = connection.execute(
                f"SELECT DISTINCT a.node AS a, b.node AS b FROM {tables[name].name} AS r "
                f"JOIN marks_{one} AS a ON a.mark = {of[one]} JOIN marks_{other} AS b ON b.mark = {of[other]}"
            ).fetchnumpy()
            ends[0].append(np.asarray(found["a"], dtype=np.int64) + bases[one])
            ends[1].append(np.asarray(found["b"], dtype=np.int64) + bases[other])
    return np.concatenate(ends[0]), np.concatenate(ends[1])


def _name_components(connection: duckdb.DuckDBPyConnection, roots: Nodes, bases: Nodes) -> None:
    """Add to each table of marks the names of their components: position and text of the least mark."""
    nodes = pa.table({"node": np.arange(len(roots), dtype=np.int64), "root": roots})
    connection.register("roots", nodes)
    indices = range(len(bases) - 1)
    named = " UNION ALL ".join(
        f"SELECT node + {bases[index]} AS node, mark, '{index}:' || mark AS unit FROM marks_{index}"
        for index in indices
    )
    connection.execute(f"CREATE TEMP TABLE named AS {named}")
    for index in indices:
        within = f"n.node >= {bases[index]} AND n.node < {bases[index + 1]}"
        connection.execute(
            f"CREATE TEMP TABLE units_{index} AS SELECT n.mark, r.unit FROM named AS n "
            f"JOIN roots AS o ON o.node = n.node JOIN named AS r ON r.node = o.root WHERE {within}"
        )
        connection.execute(f"DROP TABLE marks_{index}")
    connection.execute("DROP TABLE named")
    connection.unregister("roots")


def _with_unit(connection: duckdb.DuckDBPyConnection, table: StoredTable, texts: list[str]) -> StoredTable:
    """Return a view of a table with the unit: that of the first mark that a row has, all have the same."""
    joins = " ".join(
        f"LEFT JOIN units_{index} AS u{index} ON u{index}.mark = {text}" for index, text in enumerate(texts)
    )
    units = ", ".join(f"u{index}.unit" for index in range(len(texts)))
    view = f"{table.name}_of_components"
    connection.execute(
        f"CREATE TEMP VIEW {view} AS SELECT r.*, coalesce({units}) AS {UNIT} FROM {table.name} AS r {joins}"
    )
    unit = StoredColumn(UNIT, "VARCHAR", DUCKDB.column_type("VARCHAR"))
    return replace(table, name=view, columns=(*table.columns, unit))
