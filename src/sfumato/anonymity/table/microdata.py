"""Microdata: a table of persons, with its quasi-identifiers, sensitive columns and hierarchies."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, final

import pyarrow as pa

from sfumato import _check
from sfumato.anonymity.hierarchies.hierarchy import Codes, GeneralizationHierarchy, HierarchyBuilder
from sfumato.anonymity.table.columns import EncodedColumn, encode
from sfumato.anonymity.table.reading import read_table

__all__ = ["Microdata"]

Hierarchies: TypeAlias = Mapping[str, GeneralizationHierarchy | HierarchyBuilder | str | Path | None]


@final
class Microdata:
    """A table with a row for each person, encoded once.

    Parameters
    ----------
    frame : frame or path
        A frame of Arrow, pandas or Polars, a pyarrow Dataset, or the path of Parquet or CSV files.
    quasi_identifiers : mapping of str to hierarchy, or sequence of str
        The columns by which someone outside may know a person. Each with its `GeneralizationHierarchy`, the
        path of one in ARX's format, `Intervals`, `Dates`, `Prefixes`, or None for the value or ``*``.
    sensitive : mapping of str to hierarchy, or sequence of str
        The columns that must not be learned. A hierarchy gives their values an order and distances.

    Raises
    ------
    ParameterError
        If a column is unknown or named twice, or a hierarchy misses a value or does not nest.
    SourceError
        If the frame cannot be read.

    Examples
    --------
    >>> people = pa.table({"zip": ["02139", "02142"], "sex": ["F", None], "job": ["cook", "nurse"]})
    >>> data = Microdata(people, quasi_identifiers=["zip", "sex"], sensitive=["job"])
    >>> data.codes["zip"], data.hierarchies["sex"].values
    (array([0, 1], dtype=int32), ('F', None))
    """

    __slots__ = ("_columns", "_quasi_identifiers", "_sensitive", "_table")

    def __init__(
        self,
        frame: Any,
        *,
        quasi_identifiers: Hierarchies | Sequence[str],
        sensitive: Hierarchies | Sequence[str] = (),
    ) -> None:
        identifying = _by_name("quasi_identifiers", quasi_identifiers)
        hidden = _by_name("sensitive", sensitive)
        if not identifying:
            _check.refuse("quasi_identifiers", "name at least one column", quasi_identifiers, "name some")
        both = [name for name in identifying if name in hidden]
        if both:
            _check.refuse("sensitive", "not be a quasi-identifier", both[0], "name it once")
        wanted = {**identifying, **hidden}
        hierarchies = {name: _opened(name, given) for name, given in wanted.items()}
        self._table: pa.Table = read_table(frame)
        for name in wanted:
            _check_column(name, self._table.column_names)
        if not self._table.num_rows:
            _check.refuse_state("frame", "have at least one row", "it has none", "pass a table of persons")
        self._columns = MappingProxyType(
            {name: encode(name, self._table.column(name), hierarchies[name]) for name in wanted}
        )
        self._quasi_identifiers = tuple(identifying)
        self._sensitive = tuple(hidden)

    @property
    def table(self) -> pa.Table:
        """The rows as they came, with all columns."""
        return self._table

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self._table.num_rows)

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        """The names of the quasi-identifiers, in the order given."""
        return self._quasi_identifiers

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The names of the sensitive columns, in the order given."""
        return self._sensitive

    @property
    def columns(self) -> Mapping[str, EncodedColumn]:
        """The quasi-identifiers and sensitive columns, encoded, by name."""
        return self._columns

    @property
    def codes(self) -> Mapping[str, Codes]:
        """The codes of the rows, by column: those of the values of its hierarchy."""
        return {name: column.codes for name, column in self._columns.items()}

    @property
    def hierarchies(self) -> Mapping[str, GeneralizationHierarchy]:
        """The hierarchies, by column."""
        return {name: column.hierarchy for name, column in self._columns.items()}

    def __repr__(self) -> str:
        named = f"quasi_identifiers={list(self._quasi_identifiers)}, sensitive={list(self._sensitive)}"
        return f"Microdata({self.rows:,} rows, {named})"


def _by_name(parameter: str, given: Hierarchies | Sequence[str]) -> dict[str, Any]:
    if isinstance(given, str) or not isinstance(given, (Mapping, Sequence)):
        rule = "be names of columns, or a mapping of these to hierarchies"
        _check.refuse_type(parameter, rule, given, "pass ['age', 'sex'], say")
    if not all(isinstance(name, str) for name in given) or len(set(given)) < len(given):
        _check.refuse(parameter, "be different names of columns", list(given), "name each once")
    return dict(given) if isinstance(given, Mapping) else dict.fromkeys(given)


def _opened(name: str, given: Any) -> GeneralizationHierarchy | HierarchyBuilder | None:
    if isinstance(given, (str, Path)):
        return GeneralizationHierarchy.from_csv(given, name=f"the hierarchy of {name!r}")
    if (
        given is not None
        and not isinstance(given, GeneralizationHierarchy)
        and not hasattr(given, "hierarchy")
    ):
        rule = "be a GeneralizationHierarchy, a path, Intervals, Dates, Prefixes or None"
        _check.refuse_type(f"the hierarchy of {name!r}", rule, given, "pass {'age': None}, say")
    found: GeneralizationHierarchy | HierarchyBuilder | None = given
    return found


def _check_column(name: str, known: Sequence[str]) -> None:
    if name in known:
        return
    near = difflib.get_close_matches(name, known, 1)
    _check.refuse(
        "quasi_identifiers and sensitive",
        "name columns of the frame",
        name,
        f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}",
    )
