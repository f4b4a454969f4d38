"""How a release of TopDown is written: its places, released counts and noisy counts, in few bytes each."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato._wire import INTEGER, NUMBER, TEXT, Codec, Record, optional, sequence
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.topdown.hierarchy import Hierarchy
from sfumato.synthetic.topdown.tree_least_squares import MeasuredTable
from sfumato.synthetic.topdown.unit_counts import LevelCounts

__all__ = ["HIERARCHY", "read_counts", "read_measured", "written_counts", "written_measured"]

_REMEDY: Final = "pass what to_json returned"
_BITS: Final = (8, 16, 32, 64)


def _refuse(rule: str) -> NoReturn:
    _check.refuse_state("text", rule, "it does not", _REMEDY)


def _write_array(values: NDArray[Any]) -> dict[str, object]:
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    bits = next(bits for bits in _BITS if -(1 << (bits - 1)) <= low and high < 1 << (bits - 1))
    held = np.ascontiguousarray(values, f"<i{bits // 8}").tobytes()
    return {"bits": bits, "base64": base64.b64encode(held).decode("ascii")}


def _read_array(name: str, written: Any) -> NDArray[Any]:
    del name
    known = isinstance(written, dict) and written.keys() == {"bits", "base64"}
    if known and type(written["bits"]) is int and written["bits"] in _BITS:
        try:
            held = base64.b64decode(written["base64"], validate=True)
            return np.frombuffer(held, f"<i{written['bits'] // 8}")
        except (TypeError, ValueError):  # no text, no base64, or a part of a number
            pass
    _refuse("hold whole numbers of 8, 16, 32 or 64 bits in base64")


_ARRAY: Final[Codec[NDArray[Any]]] = Codec(_write_array, _read_array)
"""Whole numbers, signed and little-endian, of as few bits as hold them all."""


def _read_labels(name: str, written: Any) -> pa.Array:
    del name
    for kind, made in ((str, pa.large_string()), (int, pa.int64())):
        if isinstance(written, list) and written and all(type(each) is kind for each in written):
            try:
                labels = pa.array(written, made)
            except (pa.ArrowException, OverflowError, ValueError):  # beyond 64 bits, or half a surrogate pair
                break
            if len(labels.unique()) == len(labels):
                return labels
    _refuse("hold different texts or whole numbers as labels of places")


_LABELS: Final[Codec[pa.Array]] = Codec(lambda labels: labels.to_pylist(), _read_labels)


class _Places(NamedTuple):
    root: str
    levels: tuple[str, ...]
    labels: tuple[pa.Array, ...]
    children: tuple[NDArray[Any], ...]


_PLACES: Final[Record[_Places]] = Record(
    "places",
    _Places,
    {"root": TEXT, "levels": sequence(TEXT), "labels": sequence(_LABELS), "children": sequence(_ARRAY)},
)


def _write_hierarchy(places: Hierarchy) -> object:
    children = tuple(np.diff(places.starts(depth)) for depth in range(len(places.names)))
    return _PLACES.encode(_Places(places.root, places.names, places.labels, children))


def _read_hierarchy(name: str, written: Any) -> Hierarchy:
    read = _PLACES.decode(name, written)
    parents, above = [], 1
    if not read.levels or len({read.root, *read.levels}) != len(read.levels) + 1:
        _refuse("name each level of places once")
    if not len(read.levels) == len(read.labels) == len(read.children):
        _refuse("have places of each level")
    for labels, children in zip(read.labels, read.children, strict=True):
        if len(children) != above or children.min() < 1 or sum(children.tolist()) != len(labels):
            _refuse("say of each place how many it has within it")
        parents.append(np.repeat(np.arange(above), children))
        above = len(labels)
    return Hierarchy(read.root, read.levels, read.labels, tuple(parents))


HIERARCHY: Final[Codec[Hierarchy]] = Codec(_write_hierarchy, _read_hierarchy)


class _Entries(NamedTuple):
    entries: NDArray[Any]
    cells: NDArray[Any]
    counts: NDArray[Any]


_ENTRIES: Final[Record[_Entries]] = Record(
    "counts", _Entries, {"entries": _ARRAY, "cells": _ARRAY, "counts": _ARRAY}
)


def written_counts(lowest: LevelCounts) -> object:
    """Return counts of the lowest level as a part of a document.

    Parameters
    ----------
    lowest : LevelCounts

    Returns
    -------
    dict
        How many entries each place has, and of each entry the cell and the count.
    """
    return _ENTRIES.encode(_Entries(np.diff(lowest.starts), lowest.cells, lowest.counts))


def read_counts(written: Any, hierarchy: Hierarchy, domain: TableDomain) -> LevelCounts:
    """Return the counts of the lowest level that `written_counts` wrote.

    Parameters
    ----------
    written : dict
    hierarchy : Hierarchy
    domain : TableDomain

    Returns
    -------
    LevelCounts

    Raises
    ------
    ParameterError
        If they are of other places or cells.
    """
    entries, cells, counts = (each.astype(np.int64) for each in _ENTRIES.decode("counts", written))
    rule = "have counts of the places by cell, in order"
    if len(entries) != hierarchy.size(len(hierarchy.names)) or len(cells) != len(counts):
        _refuse(rule)
    if entries.min() < 0 or sum(entries.tolist()) != len(cells) or counts.min(initial=1) < 1:
        _refuse(rule)
    keys = np.repeat(np.arange(len(entries)), entries) * domain.cells + cells
    if cells.min(initial=0) < 0 or cells.max(initial=0) >= domain.cells or (np.diff(keys) < 1).any():
        _refuse(rule)
    return LevelCounts(np.concatenate([[0], np.cumsum(entries)]), cells.astype(np.int32), counts)


_TABLE: Final[Record[MeasuredTable]] = Record(
    "a measured table",
    MeasuredTable,
    {"columns": sequence(INTEGER), "counts": _ARRAY, "variance": NUMBER},
)
_MEASURED: Final = optional(sequence(sequence(_TABLE)))


def written_measured(measured: Mapping[int, Sequence[MeasuredTable]] | None) -> object:
    """Return noisy and exact counts as a part of a document.

    Parameters
    ----------
    measured : mapping of int to sequence of MeasuredTable, or None
        By depth.

    Returns
    -------
    list or None
        By depth the tables, of each its columns, counts and variance.
    """
    return _MEASURED.encode(None if measured is None else tuple(map(tuple, _by_depth(measured))))


def _by_depth(measured: Mapping[int, Sequence[MeasuredTable]]) -> Sequence[Sequence[MeasuredTable]]:
    return [measured[depth] for depth in range(len(measured))]


def read_measured(
    written: Any, hierarchy: Hierarchy, domain: TableDomain
) -> Mapping[int, Sequence[MeasuredTable]] | None:
    """Return the noisy and exact counts that `written_measured` wrote.

    Parameters
    ----------
    written : list or None
    hierarchy : Hierarchy
    domain : TableDomain

    Returns
    -------
    mapping of int to sequence of MeasuredTable, or None

    Raises
    ------
    ParameterError
        If they are of other places or columns.
    """
    read = _MEASURED.decode("measured", written)
    if read is None:
        return None
    if len(read) != len(hierarchy.levels):
        _refuse("have what was measured of each level")
    return {
        depth: tuple(_shaped(table, hierarchy.size(depth), domain) for table in tables)
        for depth, tables in enumerate(read)
    }


def _shaped(table: MeasuredTable, places: int, domain: TableDomain) -> MeasuredTable:
    """Return a table with a row for each place."""
    columns = table.columns
    if list(columns) != sorted({place for place in columns if 0 <= place < len(domain)}):
        _refuse("have tables of the domain's columns, in order")
    cells = math.prod(domain.sizes[place] for place in columns)
    if len(table.counts) != places * cells or not 0 <= table.variance < math.inf:
        _refuse("have a count of each place and cell, and its variance")
    return MeasuredTable(columns, table.counts.reshape(places, cells), table.variance)
