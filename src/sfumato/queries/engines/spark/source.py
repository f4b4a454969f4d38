"""Clusters as sources: the Spark session that computes, and the tables that are meant."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, final

from sfumato._check import refuse
from sfumato.errors import SourceError
from sfumato.frames.sources import check_names
from sfumato.queries.engines.named_columns import Columns, columns_of, named_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkSource", "as_cluster"]

Part: TypeAlias = "str | os.PathLike[str] | DataFrame"


@final
class SparkSource:
    """Tables of one Spark session, classic or Connect, which stay where they are.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
        What computes. It is never stopped, and none of its settings is changed.
    tables : mapping of str to str, path or DataFrame, or iterable of str
        The tables by the names that queries give them: a table or view of the session's catalog, a path of
        Parquet files that Spark reads, or a DataFrame. Names alone are tables under their last part.

    Raises
    ------
    SourceError
        If a table cannot be found or read, or has columns whose names differ in case alone.

    Notes
    -----
    A table must give the same rows whenever Spark reads it, for a part of it is read again when a worker is
    lost: no ``rand()``, no ``monotonically_increasing_id()``, no sample without a seed.

    Examples
    --------
    >>> from pyspark.sql import SparkSession  # doctest: +SKIP
    >>> spark = SparkSession.builder.getOrCreate()  # doctest: +SKIP
    >>> source = SparkSource(spark, {"visits": "s3://lake/visits"})  # doctest: +SKIP
    """

    __slots__ = ("session", "tables")

    def __init__(self, session: SparkSession, tables: Mapping[str, Part] | Iterable[str]) -> None:
        if isinstance(tables, str):
            tables = [tables]
        if not isinstance(tables, Mapping):
            tables = {name.rpartition(".")[2].strip("`"): name for name in tables}
        self.session = session
        self.tables = {name: _frame(session, name, part) for name, part in tables.items()}
        if not self.tables:
            raise SourceError("a Spark source must name at least one table, got none; pass {'data': frame}")
        if len({name.casefold() for name in self.tables}) < len(self.tables):
            raise SourceError(
                "the tables of a source must have names that differ beyond case; rename one of them"
            )

    def restricted(self, columns: Columns | None) -> SparkSource:
        """Return the tables with no columns but those that are named.

        Parameters
        ----------
        columns : iterable of str, or mapping of str to these, or None
            Of the only table, or table by table; None for all columns.

        Returns
        -------
        SparkSource

        Raises
        ------
        ParameterError
            If they are no names of columns of these tables.
        """
        named = named_columns(columns, tuple(self.tables))
        return SparkSource(
            self.session,
            {name: _restricted(name, frame, columns_of(named, name)) for name, frame in self.tables.items()},
        )

    def __repr__(self) -> str:
        return f"SparkSource(tables={sorted(self.tables)})"


def as_cluster(source: object) -> SparkSource | None:
    """Return the Spark tables that a source names; None for any other source.

    Parameters
    ----------
    source : object
        A SparkSource, a DataFrame of Spark (the table ``data``), or a mapping of names to such frames.

    Raises
    ------
    SourceError
        If frames of Spark stand beside others, or belong to several sessions.
    """
    if isinstance(source, SparkSource):
        return source
    parts: dict[str, Any] = dict(source) if isinstance(source, Mapping) else {"data": source}
    frames = [part for part in parts.values() if _is_frame(part)]
    if not frames:
        return None
    if len(frames) < len(parts):
        raise SourceError(
            "the tables of a source must all be frames of Spark, or none of them, got both; make the others "
            "frames with spark.createDataFrame"
        )
    return SparkSource(frames[0].sparkSession, parts)


def _restricted(name: str, frame: DataFrame, columns: tuple[str, ...] | None) -> DataFrame:
    for column in columns or ():
        if column not in frame.columns:
            has = ", ".join(repr(each) for each in frame.columns)
            refuse("columns", f"be columns of table {name!r}", column, f"name some of {has}")
    meant = [each for each in frame.columns if columns is None or each in columns]
    return frame if columns is None else frame.select(*(f"`{each.replace('`', '``')}`" for each in meant))


def _is_frame(source: object) -> bool:
    """Return whether this is a DataFrame of Spark, without importing Spark for it."""
    library = sys.modules.get("pyspark.sql")
    return library is not None and isinstance(source, library.DataFrame)


def _frame(session: SparkSession, name: Any, part: Any) -> DataFrame:
    if not isinstance(name, str) or not name:
        raise SourceError(f"a table's name must be a non-empty string, got {name!r}; pass {{'data': frame}}")
    found: Any = None
    columns: list[str] | None = None
    try:
        if _is_frame(part):
            found = part
        elif isinstance(part, os.PathLike):
            found = session.read.parquet(os.fspath(part))
        elif isinstance(part, str):
            found = session.table(part)
        columns = None if found is None else found.columns
    except Exception:  # noqa: S110 - reported below: what Spark says may quote data
        pass
    if found is None or columns is None:
        raise SourceError(
            f"table {name!r} must be a frame of Spark, the name of a table or view, or a path of Parquet "
            f"files that Spark can read, got {type(part).__name__}; check it in the session itself"
        )
    if found.sparkSession is not session:
        raise SourceError(f"table {name!r} must belong to the session of the source; make it there")
    if not columns:
        raise SourceError(f"table {name!r} must have at least one column, got none; select some")
    check_names(name, columns)
    return found
