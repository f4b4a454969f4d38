"""Mondrian: multidimensional recoding by splitting the rows at medians, as long as both halves stay private.

A value is recoded by the class of its row, not by its column: classes are boxes of the space of
quasi-identifiers (strict), or may share a border (relaxed).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato import _check
from sfumato._progress import Progress, shown_progress
from sfumato.anonymity.generalization.requirement import checked_models
from sfumato.anonymity.hierarchies.hierarchy import Label
from sfumato.anonymity.measures.sensitive_counts import SensitiveCounts, sensitive_counts
from sfumato.anonymity.privacy_models.base import PrivacyModel
from sfumato.anonymity.table.columns import EncodedColumn, has_numbers
from sfumato.anonymity.table.grouping import EquivalenceClasses
from sfumato.anonymity.table.microdata import Microdata
from sfumato.anonymity.table.released_table import RecodedTable, released_table

__all__ = ["MondrianRecoding", "mondrian"]

_Rows = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MondrianRecoding(RecodedTable):
    """A multidimensional recoding; made by `mondrian`. No row is suppressed.

    Parameters
    ----------
    class_of_row : int64 array
        The equivalence class of each row, from 0.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import anonymity
    >>> people = pa.table({"age": [31, 34, 52, 58], "sex": ["F", "M", "M", "M"]})
    >>> recoded = anonymity.mondrian(anonymity.Microdata(people, quasi_identifiers=["age", "sex"]), k=2)
    >>> recoded.table.column("age").to_pylist(), recoded.discernibility
    (['[31, 34]', '[31, 34]', '[52, 58]', '[52, 58]'], 8)
    """

    class_of_row: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many rows each class has."""
        return np.bincount(self.class_of_row)

    @property
    def discernibility(self) -> int:
        """The sum of the squares of the sizes (Bayardo and Agrawal 2005)."""
        return int(np.dot(self.sizes, self.sizes))

    @property
    def average_class_size(self) -> float:
        """The mean size of a class."""
        return float(self.sizes.mean())


def mondrian(
    data: Microdata,
    k: int,
    *,
    models: Sequence[PrivacyModel] | PrivacyModel = (),
    strict: bool = True,
    progress: Progress | bool | None = None,
) -> MondrianRecoding:
    """Recode by Mondrian: split at the median of the widest column while both halves satisfy what is asked.

    Parameters
    ----------
    data : Microdata
        The table. A column is split in the order of its hierarchy's values, of numbers by size.
    k : int
        The least size of an equivalence class.
    models : sequence of PrivacyModel
        Further conditions on each class.
    strict : bool, default True
        Whether rows of one value stay together, so that classes do not overlap. Relaxed, the rows with the
        median are divided between the halves, which gives classes of k to 2k - 1 rows for k-anonymity alone.
    progress : callable, bool or None
        Called with the rows whose class is final, and all rows; True or False show a bar or nothing, and by
        default there is one on a terminal and in a notebook. It is for who holds the rows.

    Returns
    -------
    MondrianRecoding
        The released table, and the class of each row. A class shows for a column of numbers the least and
        greatest value, for others their lowest common ancestor in a declared hierarchy, or else the set of
        values.

    Raises
    ------
    ParameterError
        If a parameter is out of range, a model reads an undeclared column, or the whole table violates a
        model.

    Notes
    -----
    Guarantee: none of differential privacy. Every class satisfies k-anonymity and the models, as a split is
    made only where both halves do. The result is greedy: no claim of optimality is made. Cuts and labels are
    chosen on the rows, and show something of them.

    References
    ----------
    LeFevre, DeWitt and Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import anonymity
    >>> people = pa.table({"age": [30, 30, 30, 30, 50], "job": ["x", "y", "x", "y", "x"]})
    >>> data = anonymity.Microdata(people, quasi_identifiers=["age"], sensitive=["job"])
    >>> anonymity.mondrian(data, k=2).sizes, anonymity.mondrian(data, k=2, strict=False).sizes
    (array([5]), array([2, 3]))
    """
    wanted = checked_models(data, k, (models,) if isinstance(models, PrivacyModel) else models)
    splitter = _Splitter(data, wanted, strict)
    if not splitter.satisfied(np.arange(data.rows), np.zeros(data.rows, dtype=np.int64)):
        _check.refuse_state("models", "be satisfied by the whole table", "it violates one", "ask for less")
    class_of_row = np.zeros(data.rows, dtype=np.int64)
    classes: list[_Rows] = []
    done = 0
    with shown_progress(progress, "recoding by Mondrian, rows") as show:
        for rows in splitter.classes():
            class_of_row[rows] = len(classes)
            classes.append(rows)
            done += len(rows)
            show(done, data.rows)
    nothing = np.zeros(data.rows, dtype=np.bool_)
    columns = {name: _labels(data.columns[name], classes) for name in data.quasi_identifiers}
    return MondrianRecoding(
        table=released_table(data, columns, nothing), suppressed=nothing, class_of_row=class_of_row
    )


class _Splitter:
    """Splits rows in two until no split is allowed."""

    def __init__(self, data: Microdata, models: Sequence[PrivacyModel], strict: bool) -> None:
        self._codes = [_ranks(data.columns[name]) for name in data.quasi_identifiers]
        self._widths = [max(1, int(codes.max() - codes.min())) for codes in self._codes]
        self._models, self._strict = models, strict
        self._data = data
        self._least = max(model.minimum_size for model in models)
        self._overall = {
            name: np.bincount(data.columns[name].codes, minlength=len(data.hierarchies[name].values))
            for name in data.sensitive
        }

    def classes(self) -> Iterator[_Rows]:
        """Yield the rows of each class, in the order of the splits, first halves first."""
        waiting = [np.arange(len(self._codes[0]))]
        while waiting:
            rows = waiting.pop()
            halves = self._split(rows) if len(rows) >= 2 * self._least else None
            if halves is None:
                yield rows
            else:
                waiting += reversed(halves)

    def _split(self, rows: _Rows) -> tuple[_Rows, _Rows] | None:
        ranges = []
        for column, codes in enumerate(self._codes):
            values = codes[rows]
            ranges.append(((int(values.max()) - int(values.min())) / self._widths[column], column))
        for width, column in sorted(ranges, key=lambda pair: (-pair[0], pair[1])):
            if width == 0:
                return None
            upper = self._upper_half(self._codes[column][rows])
            if self.satisfied(rows, upper):
                return rows[upper == 0], rows[upper == 1]
        return None

    def _upper_half(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Mark the rows above the median; strictly, all rows of one value are on one side."""
        upper = np.zeros(len(values), dtype=np.int64)
        if not self._strict:
            upper[np.argsort(values, kind="stable")[len(values) // 2 :]] = 1
            return upper
        middle = np.partition(values, (len(values) - 1) // 2)[(len(values) - 1) // 2]
        upper[values > middle if middle < values.max() else values == middle] = 1
        return upper

    def satisfied(self, rows: _Rows, side: NDArray[np.int64]) -> bool:
        """Say whether the parts of some rows satisfy all models."""
        sizes = np.bincount(side)
        if sizes.min() < self._least:
            return False
        return all(self._satisfies(model, rows, side, sizes) for model in self._models)

    def _satisfies(
        self, model: PrivacyModel, rows: _Rows, side: NDArray[np.int64], sizes: NDArray[np.int64]
    ) -> bool:
        nothing = side[:0]
        if model.sensitive is None:
            return bool(model.satisfied(SensitiveCounts(nothing, nothing, nothing, sizes, nothing)).all())
        column = self._data.columns[model.sensitive]
        classes = EquivalenceClasses(side, sizes)
        found = sensitive_counts(classes, column.codes[rows], len(column.hierarchy.values))
        counts = replace(found, totals=self._overall[model.sensitive])
        return bool(model.satisfied(counts, column.hierarchy).all())


def _ranks(column: EncodedColumn) -> NDArray[np.int32]:
    """Return the place of each row's value in the order of the hierarchy, or of numbers by size."""
    values = column.hierarchy.values
    if not has_numbers(values):
        return column.codes
    order = sorted(
        range(len(values)), key=lambda code: (values[code] is None, float(values[code] or 0), code)
    )
    places = np.empty(len(values), dtype=np.int32)
    places[order] = np.arange(len(values), dtype=np.int32)
    return places[column.codes]


def _labels(column: EncodedColumn, classes: Sequence[_Rows]) -> pa.Array:
    """Write what each class shows of a column, row by row."""
    texts: dict[Label, int] = {}
    numbers = np.empty(len(column.codes), dtype=np.int32)
    write = _writer(column)
    for rows in classes:
        numbers[rows] = texts.setdefault(write(np.unique(column.codes[rows])), len(texts))
    return pa.array(list(texts), pa.string()).take(pa.array(numbers))


def _writer(column: EncodedColumn) -> Callable[[NDArray[Any]], Label]:
    values: Sequence[Label] = column.hierarchy.values
    labels: Sequence[Sequence[Label]] = column.hierarchy.labels
    numeric = None not in values and has_numbers(values)

    def write(codes: NDArray[Any]) -> Label:
        if len(codes) == 1:
            return values[int(codes[0])]
        if numeric:
            found = sorted((str(values[code]) for code in codes), key=float)
            return f"[{found[0]}, {found[-1]}]"
        if column.declared:
            for level, of in enumerate(column.hierarchy.levels):
                if len(np.unique(of[codes])) == 1:
                    return labels[level][int(of[codes[0]])]
        return "{" + ", ".join(str(values[code]) for code in codes) + "}"

    return write
