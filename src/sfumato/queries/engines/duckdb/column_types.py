"""Types that the curator declares for the columns of CSV files, which have none of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sfumato._check import refuse, refuse_state, refuse_type
from sfumato.frames.sources import FileKind, FileSource, Source
from sfumato.queries.plan.schema import ColumnType
from sfumato.queries.plan.typed_expressions import closest_name, target_type

__all__ = ["ColumnTypes", "TableTypes", "require_columns", "require_no_types", "with_types"]

ColumnTypes: TypeAlias = Mapping[str, str]
"""Names of types by column."""

TableTypes: TypeAlias = ColumnTypes | Mapping[str, ColumnTypes]
"""Names of types by column, of the one private table; or such mappings by table."""

_EXAMPLE = "pass types={'age': 'INT64', 'day': 'DATE'}"


def with_types(
    private: Mapping[str, Source], public: Mapping[str, Source], types: TableTypes | None
) -> tuple[dict[str, Source], dict[str, Source]]:
    """Return the sources with the types that are declared for them; public files may be detected instead.

    Raises
    ------
    ParameterError
        If a type is declared for a table that there is not, or one with types of its own, or is no type.
    """
    declared = _by_table(types, {**private, **public}, list(private))
    made = {name: _typed(name, source, declared.get(name)) for name, source in {**private, **public}.items()}
    listed = {name: _detected(made[name]) for name in public}
    return {name: made[name] for name in private}, listed


def require_no_types(types: object, where: str) -> None:
    """Refuse types for tables of a database or a cluster.

    Raises
    ------
    ParameterError
        If any are given.
    """
    if types is not None:
        refuse(
            "types", f"be left out for {where}", types, "its columns have types of their own; use CAST there"
        )


def require_columns(table: str, types: Mapping[str, ColumnType], names: Sequence[str]) -> None:
    """Refuse a type for a column that a file does not have.

    Raises
    ------
    ParameterError
        If there is one.
    """
    known = {name.casefold() for name in names}
    for column in types:
        if column.casefold() not in known:
            near = closest_name(column, names)
            listed = ", ".join(repr(name) for name in names[:20])
            remedy = f"did you mean {near!r}?" if near else f"name columns among {listed}"
            refuse("types", f"name columns of table {table!r}", column, remedy)


def _by_table(
    types: TableTypes | None, tables: Mapping[str, Source], private: list[str]
) -> dict[str, ColumnTypes]:
    given: object = {} if types is None else types
    if not isinstance(given, Mapping):
        refuse_type("types", "be a mapping of columns to types", given, _EXAMPLE)
    nested = [isinstance(value, Mapping) for value in given.values()]
    if not any(nested):
        if given and len(private) > 1:
            example = f"pass types={{{private[0]!r}: {{'age': 'INT64'}}}}"
            refuse("types", "be a mapping for each table where there are several", sorted(given), example)
        return {private[0]: dict(given)} if given else {}
    for name in given:
        if name not in tables:
            refuse("types", f"name tables among {sorted(tables)}", name, "check the name")
    if not all(nested):
        refuse_state("types", "be columns' types, or a mapping for each table", "they are both", _EXAMPLE)
    return dict(given)


def _detected(source: Source) -> Source:
    return replace(source, detected=True) if isinstance(source, FileSource) else source


def _typed(name: str, source: Source, types: ColumnTypes | None) -> Source:
    if not types:
        return source
    if not isinstance(source, FileSource) or not _is_text(source, types):
        kind = f"a file of {source.kind.value}" if isinstance(source, FileSource) else "a frame"
        rule = f"be left out for table {name!r}, whose columns have types of their own"
        refuse_state("types", rule, f"they were given for {kind}", "use CAST in the query")
    if len({str(column).casefold() for column in types}) < len(types):
        refuse("types", "name columns that differ beyond case", sorted(types), "name each once")
    return replace(
        source, types=tuple((str(column), _type(column, type_).value) for column, type_ in types.items())
    )


def _is_text(source: FileSource, types: ColumnTypes) -> bool:
    """Whether columns are texts in the source: those of a CSV file, or those that folders name."""
    named = {column.casefold() for column in source.partitions}
    given = {str(column).casefold() for column in types}
    return source.kind is FileKind.CSV or (bool(named) and given <= named)


def _type(column: object, name: object) -> ColumnType:
    found = None
    if isinstance(name, str):
        with suppress(SqlglotError):
            found = target_type(exp.DataType.build(name, dialect="bigquery"))
    if found is None:
        words = ", ".join(type_.value for type_ in ColumnType if type_ is not ColumnType.DECIMAL)
        refuse("types", f"be one of {words} for column {column!r}", name, _EXAMPLE)
    return found
