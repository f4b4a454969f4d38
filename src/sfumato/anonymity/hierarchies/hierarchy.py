"""A generalisation hierarchy of one column: for each value the ever coarser values that may stand for it."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check

__all__ = ["SUPPRESSED", "Codes", "GeneralizationHierarchy", "HierarchyBuilder", "Label"]

Label: TypeAlias = str | None
"""The text of a value; None where it is missing."""

Codes: TypeAlias = NDArray[np.int32]

SUPPRESSED: Final = "*"


class HierarchyBuilder(Protocol):
    """What makes a hierarchy for the values of a column, such as `Intervals`."""

    def hierarchy(self, values: Sequence[str]) -> GeneralizationHierarchy:
        """Return a hierarchy of these values, in this order."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class GeneralizationHierarchy:
    """Levels of ever coarser values; level 0 is the values themselves.

    Make one with `from_csv` or `from_rows`, or let `Intervals`, `Dates`, `Prefixes` or `Suppression` make it
    for the values that a column has.

    Parameters
    ----------
    levels : tuple of int32 array
        ``levels[l][code]`` is the code, at level l, of the value with this code; ``levels[0]`` counts up.
    labels : tuple of tuple of str or None
        ``labels[l][code]`` is the text of a code at level l. None is the missing value.

    Examples
    --------
    >>> rows = [("nurse", "health", "*"), ("doctor", "health", "*"), ("cook", "food", "*")]
    >>> jobs = GeneralizationHierarchy.from_rows(rows)
    >>> jobs.levels[1], jobs.labels[1]
    (array([0, 0, 1], dtype=int32), ('health', 'food'))
    >>> jobs.height
    2
    """

    levels: tuple[Codes, ...]
    labels: tuple[tuple[Label, ...], ...]

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[Label]], *, name: str = "hierarchy") -> Self:
        """Return the hierarchy that these rows list.

        Parameters
        ----------
        rows : iterable of sequences of str
            One for each value: the value, then what stands for it at level 1, 2 and so on.
        name : str
            What messages call it.

        Returns
        -------
        GeneralizationHierarchy

        Raises
        ------
        ParameterError
            If rows differ in length, name a value twice, or do not nest.
        """
        listed = list(dict.fromkeys(tuple(row) for row in rows))
        if not listed or not listed[0]:
            _check.refuse_state(name, "list at least one value", "it is empty", "give a row per value")
        for row in listed:
            if len(row) != len(listed[0]):
                _check.refuse(name, f"have {len(listed[0])} levels for each value", row, "complete the row")
        columns = list(zip(*listed, strict=True))
        _check_unique(name, columns[0])
        for level in range(1, len(columns)):
            _check_nested(name, columns[level - 1], columns[level], level)
        return cls._of_columns(columns)

    @classmethod
    def _of_columns(cls, columns: Sequence[Sequence[Label]]) -> Self:
        levels, labels = [], []
        for column in columns:
            index = {label: code for code, label in enumerate(dict.fromkeys(column))}
            codes = np.fromiter((index[label] for label in column), np.int32, len(column))
            codes.flags.writeable = False
            levels.append(codes)
            labels.append(tuple(index))
        return cls(tuple(levels), tuple(labels))

    @classmethod
    def from_csv(cls, path: str | Path, *, separator: str | None = None, name: str = "hierarchy") -> Self:
        """Return the hierarchy of a file, in the format of ARX: no header, a row for each value.

        Parameters
        ----------
        path : path
            A text file in UTF-8.
        separator : str, optional
            What stands between the levels; ``;`` where the first row has one, else ``,``.
        name : str
            What messages call it.

        Returns
        -------
        GeneralizationHierarchy

        Raises
        ------
        ParameterError
            If it cannot be read, or is no hierarchy.
        """
        try:
            text = Path(path).expanduser().read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            _check.refuse(name, "be a text file that can be read", str(path), "check the path")
        lines = [line for line in text.splitlines() if line.strip()]
        if separator is None:
            separator = ";" if len(next(csv.reader(lines[:1], delimiter=";"), [])) > 1 else ","
        return cls.from_rows(csv.reader(lines, delimiter=separator), name=name)

    @property
    def height(self) -> int:
        """The number of levels above the values themselves."""
        return len(self.levels) - 1

    @property
    def values(self) -> tuple[Label, ...]:
        """The values that it covers, in the order of their codes."""
        return self.labels[0]

    def cardinality(self, level: int) -> int:
        """Return how many values a level has.

        Parameters
        ----------
        level : int

        Returns
        -------
        int
        """
        return len(self.labels[level])

    def parents(self, level: int) -> Codes:
        """Return, for each code at this level, the code of its value at the next level.

        Parameters
        ----------
        level : int

        Returns
        -------
        int32 array
        """
        found = np.empty(self.cardinality(level), np.int32)
        found[self.levels[level]] = self.levels[level + 1]
        return found

    def rows(self) -> list[tuple[Label, ...]]:
        """Return a row for each value: the value, then what stands for it at level 1, 2 and so on.

        Returns
        -------
        list of tuples
            As `from_rows` takes them.
        """
        return list(zip(*self._columns(), strict=True))

    def with_suppression(self) -> GeneralizationHierarchy:
        """Return the hierarchy with ``*`` for every value on top.

        Returns
        -------
        GeneralizationHierarchy
            Itself where its top has a single value.
        """
        if self.cardinality(self.height) == 1 and self.height:
            return self
        return GeneralizationHierarchy._of_columns([*self._columns(), [SUPPRESSED] * len(self.values)])

    def with_missing(self) -> GeneralizationHierarchy:
        """Return the hierarchy with the missing value as a category of its own, below a single top value.

        Returns
        -------
        GeneralizationHierarchy
        """
        if None in self.values:
            return self
        columns = self._columns()
        top = self.height
        for level, column in enumerate(columns):
            # Below the top, one label alone may be of an interval in which all other values happen to lie.
            root = 0 < level == top and self.cardinality(level) == 1
            column.append(column[0] if root else None)
        return GeneralizationHierarchy._of_columns(columns)

    def _columns(self) -> list[list[Label]]:
        return [
            [labels[code] for code in codes] for codes, labels in zip(self.levels, self.labels, strict=True)
        ]


def _check_unique(name: str, values: Sequence[Label]) -> None:
    seen: set[Label] = set()
    for value in values:
        if value in seen:
            _check.refuse(name, "have one row for each value", value, "drop the other row")
        seen.add(value)


def _check_nested(name: str, below: Sequence[Label], above: Sequence[Label], level: int) -> None:
    parents: dict[Label, Label] = {}
    for label, parent in zip(below, above, strict=True):
        if parents.setdefault(label, parent) != parent:
            _check.refuse_state(
                name,
                "nest",
                f"{label!r} at level {level - 1} lies in both {parents[label]!r} and {parent!r} above",
                "name different values differently",
            )
