"""Which classes of equals of a generalised table a person may be in."""

from __future__ import annotations

import math
from itertools import product
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from sfumato.attacks.inference.record_matrix import columns_of
from sfumato.attacks.syntactic.label_coverage import Coverage, coded, covering, is_suppressed

__all__ = ["ClassMatches", "class_matches"]

_FEW: Final = 256
"""Combinations of labels that are looked up one by one."""

_BLOCK: Final = 8_000_000
"""Pairs of a person and a class at once."""

_Part: TypeAlias = tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]
"""Which label stands for which value, the value of each person, the label of each class."""


class ClassMatches(NamedTuple):
    """Classes of equals of a table, and who may be in them.

    Attributes
    ----------
    matches : sparse array of shape (people, classes)
        1 where a person may be.
    classes : int64 array of shape (rows,)
        The class of each row.
    suppressed : bool array of shape (classes,)
        Which class has ``*`` in all columns.
    """

    matches: sparse.csr_array
    classes: NDArray[np.int64]
    suppressed: NDArray[np.bool_]


def class_matches(release: pa.Table, people: pa.Table, coverage: Coverage) -> ClassMatches:
    """Return which classes of equals each person may be in.

    Parameters
    ----------
    release : pyarrow.Table
        Generalised: labels for values.
    people : pyarrow.Table
        Quasi-identifiers, not generalised.
    coverage : mapping
        By column; where one has none, a label stands for itself, and ``*`` for everything.

    Returns
    -------
    ClassMatches
    """
    names = columns_of("targets", people.schema.names, release, people)
    fits, classes = [], np.zeros(release.num_rows, dtype=np.int64)
    hidden = np.ones(release.num_rows, dtype=np.bool_)
    for name in names:
        labels, at = coded(release.column(name))
        values, mine = coded(people.column(name))
        covers = covering(coverage.get(name))
        fits.append((np.array([[covers(value, label) for label in labels] for value in values]), mine, at))
        _, classes = np.unique(classes * len(labels) + at, return_inverse=True)
        hidden &= is_suppressed(labels)[at]
    _, first, members = np.unique(classes, return_index=True, return_inverse=True)
    parts = [(table, mine, at[first]) for table, mine, at in fits]
    return ClassMatches(_matches(parts), np.asarray(members, dtype=np.int64), hidden[first])


def _matches(parts: list[_Part]) -> sparse.csr_array:
    labels = math.prod(fits.shape[1] for fits, _, _ in parts)
    combinations = math.prod(int(fits.sum(axis=1).max()) for fits, _, _ in parts)
    if combinations <= _FEW and labels < 1 << 62:
        return _looked_up(parts)
    rows = max(1, _BLOCK // len(parts[0][2]))
    people = len(parts[0][1])
    blocks = [_compared(parts, slice(start, start + rows)) for start in range(0, people, rows)]
    return sparse.csr_array(sparse.vstack(blocks, format="csr"))


def _compared(parts: list[_Part], some: slice) -> sparse.csr_array:
    """Compare some people with each class."""
    found = [fits[mine[some]][:, of_class] for fits, mine, of_class in parts]
    return sparse.csr_array(np.logical_and.reduce(found).astype(np.float64))


def _looked_up(parts: list[_Part]) -> sparse.csr_array:
    """Look classes up by label: where few labels stand for a value, all their combinations."""
    people, classes = len(parts[0][1]), len(parts[0][2])
    keys = np.zeros(classes, dtype=np.int64)
    for fits, _, of_class in parts:
        keys = keys * fits.shape[1] + of_class
    order = np.argsort(keys)
    options = [_labels_of(fits) for fits, _, _ in parts]
    rows: list[NDArray[np.int64]] = []
    columns: list[NDArray[np.int64]] = []
    for chosen in product(*(range(option.shape[1]) for option in options)):
        key, there = np.zeros(people, dtype=np.int64), np.ones(people, dtype=np.bool_)
        for (fits, mine, _), option, place in zip(parts, options, chosen, strict=True):
            label = option[mine, place]
            there &= label >= 0
            key = key * fits.shape[1] + label
        at = order[np.minimum(np.searchsorted(keys, key, sorter=order), classes - 1)]
        there &= keys[at] == key
        rows.append(np.flatnonzero(there))
        columns.append(at[there])
    row, column = np.concatenate(rows), np.concatenate(columns)
    return sparse.csr_array((np.ones(len(row)), (row, column)), shape=(people, classes))


def _labels_of(fits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the labels that stand for each value, padded with -1."""
    widest = max(1, int(fits.sum(axis=1).max()))
    order = np.argsort(~fits, axis=1, kind="stable")[:, :widest]
    return np.where(np.take_along_axis(fits, order, axis=1), order, -1)
