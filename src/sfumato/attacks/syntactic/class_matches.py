"""Which rows of a generalised table a person may be, and the sensitive values of these rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato import _check
from sfumato.anonymity.hierarchies.hierarchy import SUPPRESSED, Hierarchy
from sfumato.attacks.inference.record_matrix import columns_of
from sfumato.synthetic.domain.column_types import plain_column

__all__ = ["Coverage", "MatchedValues", "checked_coverage", "matched_values", "matching_classes"]

Coverage: TypeAlias = Mapping[str, "Hierarchy | Callable[[str | None, str | None], bool]"]
"""By column, its hierarchy, or a function that tells whether a label stands for a value."""

_FEW: Final = 256
"""Combinations of labels that are looked up one by one."""

_BLOCK: Final = 8_000_000
"""Pairs of a person and a class at once."""

_Part: TypeAlias = tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]
"""Which label stands for which value, the value of each person, the label of each class."""


class MatchedValues(NamedTuple):
    """Sensitive values of the rows that each target may be.

    Attributes
    ----------
    values : list
        Of the sensitive column, those that occur.
    counts : array of float, shape (targets, values)
        How many matching rows have each; zeros where no row matches.
    overall : array of float, shape (values,)
        Of all rows.
    """

    values: list[Any]
    counts: NDArray[np.float64]
    overall: NDArray[np.float64]


def checked_coverage(coverage: Mapping[str, Any] | None) -> Coverage:
    """Return what tells which labels stand for which values, or refuse it."""
    given = {} if coverage is None else dict(coverage)
    for column, covers in given.items():
        if not callable(covers) and not isinstance(covers, Hierarchy):
            rule = "have a Hierarchy, or a function of a value and a label, for each column"
            _check.refuse_type("hierarchies", rule, covers, f"see column {column!r}")
    return given


def matched_values(release: pa.Table, targets: pa.Table, sensitive: str, coverage: Coverage) -> MatchedValues:
    """Return the sensitive values of all rows that may be each target.

    Parameters
    ----------
    release : pyarrow.Table
        Generalised: labels for values.
    targets : pyarrow.Table
        The quasi-identifiers, not generalised.
    sensitive : str
        A column of the release.
    coverage : mapping
        By column; where one has none, a label stands for itself, and ``*`` for everything.

    Returns
    -------
    MatchedValues
        Rows that are suppressed in all columns count only for who fits no others: an algorithm that
        suppresses classes which are too small does not suppress whoever is in one that is not.
    """
    columns_of("sensitive", [sensitive], release)
    found, has = _coded(release.column(sensitive))
    parts, members = _parts(release, targets, coverage)
    counts = np.zeros((int(members.max()) + 1, len(found)))
    np.add.at(counts, (members, has), 1)
    hidden = _suppressed(release, targets.schema.names, members, len(counts))
    summed = _summed(parts, np.where(hidden[:, None], 0.0, counts))
    if hidden.any():
        nowhere = summed.sum(axis=1) == 0
        summed[nowhere] = counts[hidden].sum(axis=0)
    return MatchedValues(found, summed, counts.sum(axis=0))


def _suppressed(
    release: pa.Table, names: list[str], members: NDArray[np.int64], classes: int
) -> NDArray[np.bool_]:
    """Return which class of equals has ``*`` in all columns."""
    hidden = np.zeros(classes, dtype=np.bool_)
    every = np.ones(release.num_rows, dtype=np.bool_)
    for name in names:
        labels, at = _coded(release.column(name))
        every &= np.array([_text(label) == SUPPRESSED for label in labels])[at]
    hidden[members[every]] = True
    return hidden


def _summed(parts: list[_Part], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add up the counts of all classes that each person may be in."""
    people, again = np.unique(np.stack([mine for _, mine, _ in parts]), axis=1, return_inverse=True)
    alike = [(fits, mine, of_class) for (fits, _, of_class), mine in zip(parts, people, strict=True)]
    labels = math.prod(fits.shape[1] for fits, _, _ in parts)
    combinations = math.prod(int(fits.sum(axis=1).max()) for fits, _, _ in parts)
    if combinations <= _FEW and labels < 1 << 62:
        found = _looked_up(alike, counts)
    else:
        rows = max(1, _BLOCK // len(counts))
        found = np.concatenate(
            [
                _matching(alike, slice(start, start + rows)).astype(np.float64) @ counts
                for start in range(0, people.shape[1], rows)
            ]
        )
    return np.asarray(found[again.reshape(-1)], dtype=np.float64)


def _looked_up(parts: list[_Part], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add up the counts, class by class: where few labels stand for a value, all their combinations."""
    keys = np.zeros(len(counts), dtype=np.int64)
    for fits, _, of_class in parts:
        keys = keys * fits.shape[1] + of_class
    order = np.argsort(keys)
    found = np.zeros((len(parts[0][1]), counts.shape[1]))
    options = [_labels_of(fits) for fits, _, _ in parts]
    for chosen in product(*(range(option.shape[1]) for option in options)):
        key, there = np.zeros(len(found), dtype=np.int64), np.ones(len(found), dtype=np.bool_)
        for (fits, mine, _), option, column in zip(parts, options, chosen, strict=True):
            label = option[mine, column]
            there &= label >= 0
            key = key * fits.shape[1] + label
        at = np.minimum(np.searchsorted(keys, key, sorter=order), len(keys) - 1)
        there &= keys[order[at]] == key
        found[there] += counts[order[at[there]]]
    return found


def _labels_of(fits: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the labels that stand for each value, padded with -1."""
    widest = max(1, int(fits.sum(axis=1).max()))
    order = np.argsort(~fits, axis=1, kind="stable")[:, :widest]
    return np.where(np.take_along_axis(fits, order, axis=1), order, -1)


def matching_classes(
    release: pa.Table, people: pa.Table, coverage: Coverage
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which classes of equals each person may be in, and the class of each row.

    Parameters
    ----------
    release : pyarrow.Table
        Generalised: labels for values.
    people : pyarrow.Table
        Quasi-identifiers, not generalised.
    coverage : mapping
        By column, as for `matched_values`.

    Returns
    -------
    matching : bool array of shape (people, classes)
    classes : int64 array of shape (rows,)
    """
    parts, members = _parts(release, people, coverage)
    return _matching(parts, slice(None)), members


def _parts(release: pa.Table, people: pa.Table, coverage: Coverage) -> tuple[list[_Part], NDArray[np.int64]]:
    """Return, for each column, which label stands for which value, and the class of each row."""
    names = columns_of("targets", people.schema.names, release, people)
    fits, classes = [], np.zeros(release.num_rows, dtype=np.int64)
    for name in names:
        labels, at = _coded(release.column(name))
        values, mine = _coded(people.column(name))
        covers = _covering(coverage.get(name))
        fits.append((np.array([[covers(value, label) for label in labels] for value in values]), mine, at))
        _, classes = np.unique(classes * len(labels) + at, return_inverse=True)
    _, first, members = np.unique(classes, return_index=True, return_inverse=True)
    return [(table, mine, at[first]) for table, mine, at in fits], np.asarray(members, dtype=np.int64)


def _matching(parts: list[_Part], some: slice) -> NDArray[np.bool_]:
    """Return which classes some people may be in."""
    found = [table[mine[some]][:, of_class] for table, mine, of_class in parts]
    return np.asarray(np.logical_and.reduce(found), dtype=np.bool_)


def _coded(column: pa.ChunkedArray) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the different values of a column, and the index of each row's; numbers stay what they are."""
    plain = plain_column(column)
    known = pc.unique(plain)
    codes = pc.index_in(plain, value_set=known)
    return known.to_pylist(), np.asarray(codes, dtype=np.int64)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _covering(covers: Any) -> Callable[[Any, Any], bool]:
    if covers is None:
        return lambda value, label: label in (SUPPRESSED, value) or _text(value) == _text(label)
    if not isinstance(covers, Hierarchy):
        return lambda value, label: bool(covers(_text(value), _text(label)))
    above: dict[Any, set[Any]] = {}
    for place, value in enumerate(covers.values):
        codes = [level[place] for level in covers.levels]
        above[value] = {labels[code] for labels, code in zip(covers.labels, codes, strict=True)}

    def covered(value: Any, label: Any) -> bool:
        text = _text(label)
        return text == SUPPRESSED or text in above.get(_text(value), ())

    return covered
