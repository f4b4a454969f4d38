"""Columns as integer codes with a table of categories, encoded once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import pyarrow as pa

from sfumato import _check
from sfumato.anonymity.hierarchies.hierarchy import (
    SUPPRESSED,
    Codes,
    GeneralizationHierarchy,
    HierarchyBuilder,
    Label,
)
from sfumato.anonymity.hierarchies.suppression import Suppression

__all__ = ["EncodedColumn", "encode", "has_numbers"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class EncodedColumn:
    """A column of the table as codes of its hierarchy's values.

    Parameters
    ----------
    name : str
    codes : int32 array
        A code for each row: ``hierarchy.values[code]`` is its value.
    hierarchy : GeneralizationHierarchy
    declared : bool
        Whether the hierarchy was given; else it is the values in order, numbers by size and texts by
        alphabet, the missing value last, and ``*`` above them.
    builder : HierarchyBuilder or None
        What made the hierarchy from the column's values.

    Examples
    --------
    >>> column = encode("sex", pa.chunked_array([["M", "F", "M"]]), None)
    >>> column.codes, column.hierarchy.values
    (array([1, 0, 1], dtype=int32), ('F', 'M'))
    """

    name: str
    codes: Codes
    hierarchy: GeneralizationHierarchy
    declared: bool
    builder: HierarchyBuilder | None

    def at(self, level: int) -> Codes:
        """Return the codes of all rows at a level of the hierarchy."""
        return self.hierarchy.levels[level][self.codes]


def encode(
    name: str, column: pa.ChunkedArray, hierarchy: GeneralizationHierarchy | HierarchyBuilder | None
) -> EncodedColumn:
    """Return a column as codes.

    Parameters
    ----------
    name : str
        What messages call it.
    column : pyarrow.ChunkedArray
        Of any type that can be cast to text.
    hierarchy : GeneralizationHierarchy, builder of one, or None
        It must cover every value of the column; a missing value is a category of its own.

    Returns
    -------
    EncodedColumn

    Raises
    ------
    ParameterError
        If the hierarchy does not cover a value, or cannot be built for one.
    """
    indices, labels = _dictionary(name, column)
    declared = hierarchy is not None
    builder = None
    if not isinstance(hierarchy, GeneralizationHierarchy):
        builder = Suppression() if hierarchy is None else hierarchy
        key = _sort_key if has_numbers(labels) else None
        present = sorted((label for label in labels if label is not None), key=key)
        hierarchy = (
            builder.hierarchy(present) if present else GeneralizationHierarchy.from_rows([(None, SUPPRESSED)])
        )
    if None in labels:
        hierarchy = hierarchy.with_missing()
    index = {label: code for code, label in enumerate(hierarchy.values)}
    for label in labels:
        if label not in index:
            _check.refuse(f"the hierarchy of {name!r}", "cover every value", label, "add a row for it")
    remap = np.fromiter((index[label] for label in labels), np.int32, len(labels))
    codes = remap[indices]
    codes.flags.writeable = False
    return EncodedColumn(name, codes, hierarchy, declared, builder)


def has_numbers(labels: Sequence[Label]) -> bool:
    """Return whether each value that is not missing is the text of a finite number."""
    try:
        return all(math.isfinite(float(label)) for label in labels if label is not None)
    except ValueError:
        return False


def _sort_key(label: str) -> tuple[float, str]:
    return float(label), label


def _dictionary(name: str, column: pa.ChunkedArray) -> tuple[Codes, list[Label]]:
    """Return a code for each row, and the text of each code, None for the missing value."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    try:
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.unify_dictionaries().combine_chunks()
        labels = encoded.dictionary.cast(pa.string()).to_pylist()
    except pa.ArrowException:
        _check.refuse_state(
            f"column {name!r}",
            "have a type that can be written as text",
            f"it is of type {column.type}",
            "cast it",
        )
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32), labels
