"""Predicates: conjunctions of conditions on columns, and how many records satisfy them."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.attacks.inference.record_matrix import RecordMatrix

__all__ = ["Predicates", "matches", "random_predicates", "surprise", "unique_predicates"]

EQUAL: Final = 0
AT_MOST: Final = 1
AT_LEAST: Final = 2

_CELLS: Final = 2_000_000
"""Conditions looked at in one go."""

_TRIES: Final = 20
"""How many predicates are drawn at most for each one that is wanted."""

_FEW: Final = 2_000
"""Records among which most predicates that isolate none are already seen."""


class Predicates(NamedTuple):
    """Conjunctions of conditions, one row each.

    Attributes
    ----------
    columns : int64 array of shape (predicates, conditions)
    kinds : int8 array of the same shape
        0: equal, or both missing; 1: at most; 2: at least.
    values : array of float, of the same shape
    """

    columns: NDArray[np.int64]
    kinds: NDArray[np.int8]
    values: NDArray[np.float64]

    def of(self, chosen: NDArray[np.bool_] | NDArray[np.int64] | slice) -> Predicates:
        """Return some of them."""
        return Predicates(self.columns[chosen], self.kinds[chosen], self.values[chosen])


def matches(predicates: Predicates, records: RecordMatrix) -> NDArray[np.int64]:
    """Return how many records satisfy each predicate.

    Parameters
    ----------
    predicates : Predicates
    records : RecordMatrix

    Returns
    -------
    int64 array of shape (predicates,)
    """
    values = np.ascontiguousarray(records.values.T)
    rows = max(1, _CELLS // max(1, values.shape[1]))
    found = np.empty(len(predicates.columns), dtype=np.int64)
    for start in range(0, len(found), rows):
        some = predicates.of(slice(start, start + rows))
        holds = np.ones((len(some.columns), values.shape[1]), dtype=np.bool_)
        for place in range(some.columns.shape[1]):
            holds &= _holds(values[some.columns[:, place]], some.kinds[:, place], some.values[:, place])
        found[start : start + rows] = holds.sum(axis=1)
    return found


def surprise(predicates: Predicates, records: RecordMatrix) -> NDArray[np.float64]:
    """Return minus the log of the share of records that satisfied each predicate were columns independent."""
    total = np.zeros(len(predicates.columns))
    for place in range(predicates.columns.shape[1]):
        here = slice(place, place + 1)
        columns, kinds, values = predicates
        alone = Predicates(columns[:, here], kinds[:, here], values[:, here])
        total -= np.log(np.maximum(matches(alone, records), 1) / len(records.values))
    return total


def unique_predicates(
    records: RecordMatrix, wanted: int, conditions: int, generator: np.random.Generator
) -> Predicates:
    """Return different predicates that exactly one record satisfies each.

    Parameters
    ----------
    records : RecordMatrix
    wanted : int
        How many; fewer are returned where fewer are found.
    conditions : int
        At most the number of columns.
    generator : numpy Generator

    Returns
    -------
    Predicates
    """
    drawn = _extremes(records) if conditions == 1 else None
    drawn = _drawn(records, wanted * _TRIES, conditions, generator) if drawn is None else drawn
    missing = np.isnan(drawn.values)
    parts = (drawn.columns, drawn.kinds, missing, np.where(missing, 0.0, drawn.values))
    _, first = np.unique(np.hstack(parts), axis=0, return_index=True)
    drawn = drawn.of(generator.permutation(first))
    few = RecordMatrix(records.values[:_FEW], records.numeric)
    drawn = drawn.of(matches(drawn, few) <= 1)
    return drawn.of(matches(drawn, records) == 1).of(slice(0, wanted))


def random_predicates(
    records: RecordMatrix, wanted: int, conditions: int, generator: np.random.Generator
) -> Predicates:
    """Return predicates whose values and kinds are drawn independently, column by column.

    Parameters
    ----------
    records : RecordMatrix
        Whose values occur.
    wanted, conditions : int
    generator : numpy Generator

    Returns
    -------
    Predicates
    """
    found = _drawn(records, wanted, conditions, generator)
    apart = generator.integers(0, len(records.values), found.columns.shape)
    values = records.values[apart, found.columns]
    ordered = records.numeric[found.columns] & ~np.isnan(values)
    kinds = np.where(ordered, generator.integers(0, 3, values.shape), EQUAL).astype(np.int8)
    return Predicates(found.columns, kinds, values)


def _drawn(records: RecordMatrix, count: int, conditions: int, generator: np.random.Generator) -> Predicates:
    """Return predicates that hold for one drawn record each."""
    width = records.values.shape[1]
    columns = generator.random((count, width)).argsort(axis=1)[:, :conditions].astype(np.int64)
    columns.sort(axis=1)
    values = records.values[generator.integers(0, len(records.values), (count, 1)), columns]
    with np.errstate(invalid="ignore"):
        far = values >= _medians(records)[columns]
    ordered = records.numeric[columns] & ~np.isnan(values)
    kinds = np.where(ordered, np.where(far, AT_LEAST, AT_MOST), EQUAL).astype(np.int8)
    return Predicates(columns, kinds, values)


def _extremes(records: RecordMatrix) -> Predicates:
    """Return, of each column, equations with all its values, and that it is at the lowest or highest."""
    found: list[tuple[int, int, float]] = []
    for column, ordered in enumerate(records.numeric):
        values = np.unique(records.values[:, column])
        known = values[~np.isnan(values)]
        found += [(column, EQUAL, value) for value in values.tolist()]
        if ordered and len(known):
            found += [(column, AT_MOST, float(known[0])), (column, AT_LEAST, float(known[-1]))]
    columns, kinds, given = zip(*found, strict=True)
    return Predicates(
        np.array(columns, dtype=np.int64)[:, None],
        np.array(kinds, dtype=np.int8)[:, None],
        np.array(given, dtype=np.float64)[:, None],
    )


def _medians(records: RecordMatrix) -> NDArray[np.float64]:
    found = np.zeros(len(records.numeric))
    for column in np.flatnonzero(records.numeric):
        known = records.values[:, column]
        known = known[~np.isnan(known)]
        found[column] = np.median(known) if len(known) else 0.0
    return found


def _holds(
    values: NDArray[np.float64], kinds: NDArray[np.int8], given: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return where one condition of each predicate holds; ``values`` has a row for each."""
    given, kinds = given[:, None], kinds[:, None]
    with np.errstate(invalid="ignore"):
        low, high = values <= given, values >= given
    same = (low & high) | (np.isnan(values) & np.isnan(given))
    return np.where(kinds == EQUAL, same, np.where(kinds == AT_MOST, low, high))
