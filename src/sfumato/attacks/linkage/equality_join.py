"""Linkage by equality: names joined to a table without them, by what both have, as Sweeney did in 1997."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.anonymity.hierarchies.hierarchy import GeneralizationHierarchy
from sfumato.attacks.base.attack import Attack, read_release
from sfumato.attacks.base.findings import Findings
from sfumato.attacks.base.knowledge import Knowledge
from sfumato.attacks.linkage.links import Links, link_findings
from sfumato.frames.arrow import as_arrow
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["EqualityLinkage", "MatchingClasses", "check_columns", "matching_classes", "matching_rows"]

Whole = NDArray[np.int64]
HierarchyRows = GeneralizationHierarchy | Sequence[Sequence[Any]]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EqualityLinkage(Attack):
    """Link persons to the one row of a released table that has their values.

    Parameters
    ----------
    auxiliary : frame
        The targets, with their exact values: a pandas, Polars or Arrow table.
    on : sequence of str
        Columns that it shares with the release.
    hierarchies : mapping of str to GeneralizationHierarchy or rows, optional
        For columns that the release may have generalised: a `sfumato.anonymity.GeneralizationHierarchy`, or a
        row for each value, which begins with it and goes on with its labels, from the finest to the coarsest.
        A release may mix levels.

    Raises
    ------
    ParameterError
        If a column is missing, or a hierarchy lacks a value or a label, or has a label at several levels.

    Notes
    -----
    A person is linked if exactly one row may be theirs. Where k-anonymity holds on these columns, none is.

    References
    ----------
    Sweeney (2002), "k-anonymity: a model for protecting privacy", IJUFKS 10(5), section 2: a voter list
    joined to hospital records (GIC) by date of birth, sex and ZIP code.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato import attacks
    >>> voters = pa.table({"age": [23, 37, 61], "sex": ["F", "F", "M"]})
    >>> ages = [(n, "0-29" if n < 30 else "30-99", "*") for n in range(100)]
    >>> released = pa.table({"age": ["0-29", "30-99", "30-99"], "sex": ["F", "M", "M"]})
    >>> attack = attacks.EqualityLinkage(auxiliary=voters, on=("age", "sex"), hierarchies={"age": ages})
    >>> found = attack.run(released, truth=[0, -1, 2])
    >>> found.targets.guesses.tolist(), found.targets.claimed.tolist(), found.targets.hits
    ([0, -1, 1], [True, False, False], 1)
    """

    auxiliary: Any
    on: Sequence[str]
    hierarchies: Mapping[str, HierarchyRows] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "auxiliary", as_arrow("auxiliary", self.auxiliary))
        check_columns("auxiliary", self.auxiliary, self.on)
        unknown = [name for name in self.hierarchies if name not in self.on]
        if unknown:
            _check.refuse(
                "hierarchies", f"be of columns in on, {', '.join(self.on)}", unknown[0], "name it in on"
            )

    @property
    def knowledge(self) -> Knowledge:
        """What the attacker has beside the table."""
        known = f"of each target, {', '.join(self.on)}, and who they are"
        return Knowledge((known,), {"auxiliary": self.auxiliary})

    def run(
        self,
        release: Any,
        *,
        truth: ArrayLike | None = None,
        controls: Any = None,
        exchangeable: bool = False,
        loss: PrivacyLoss | None = None,
        confidence: float = 0.95,
    ) -> Findings:
        """Link the targets to rows of a table.

        Parameters
        ----------
        release : frame
            The released table.
        truth : int array of shape (targets,), optional
            Each target's row in it, -1 for who has none.
        controls : frame, optional
            Persons who have no row, in the form of the auxiliary table.
        exchangeable : bool
            Whether targets and controls were drawn alike; no bound on the rates follows here.
        loss : PrivacyLoss, optional
            Of the release.
        confidence : float
            That the intervals hold together.

        Returns
        -------
        Findings
            Its guesses are rows, its scores one over how many rows fit.
        """
        value, loss = read_release(release, loss)
        table = as_arrow("release", value)
        check_columns("release", table, self.on)
        rows, counts = matching_rows(self.auxiliary, table, self.on, self.hierarchies)
        other = None
        if controls is not None:
            frame = as_arrow("controls", controls)
            check_columns("controls", frame, self.on)
            other = _links(*matching_rows(frame, table, self.on, self.hierarchies))
        return link_findings(
            "linkage by equality",
            self.knowledge,
            _links(rows, counts),
            other,
            truth=truth,
            loss=loss,
            exchangeable=exchangeable,
            confidence=confidence,
            numbers={
                "targets with a row": float((counts > 0).mean()),
                "mean rows of a target": float(counts.mean()),
            },
        )


def _links(rows: Whole, counts: Whole) -> Links:
    return Links(rows, np.where(counts > 0, 1 / np.maximum(counts, 1), 0.0), counts == 1)


def matching_rows(
    people: pa.Table, table: pa.Table, on: Sequence[str], hierarchies: Mapping[str, HierarchyRows]
) -> tuple[Whole, Whole]:
    """Return for each person the first row that may be theirs, or -1, and how many there are.

    Parameters
    ----------
    people, table : pyarrow.Table
    on : sequence of str
    hierarchies : mapping of str to rows

    Returns
    -------
    tuple of two int64 arrays of shape (people,)

    Raises
    ------
    ParameterError
        If a hierarchy lacks a value or a label, or has a label at several levels.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people, table = pa.table({"a": [1, 2, 3]}), pa.table({"a": [2, 1, 2]})
    >>> [found.tolist() for found in matching_rows(people, table, ("a",), {})]
    [[1, 0, -1], [1, 2, 0]]
    """
    first = np.full(people.num_rows, -1, dtype=np.int64)
    counts = np.zeros(people.num_rows, dtype=np.int64)
    for group in matching_classes(people, table, on, hierarchies):
        starts = np.full(group.classes, table.num_rows, dtype=np.int64)
        np.minimum.at(starts, group.row_class, group.rows)
        row, present = starts[group.person_class], first[group.persons]
        first[group.persons] = np.where(present < 0, row, np.minimum(present, row))
        counts[group.persons] += np.bincount(group.row_class, minlength=group.classes)[group.person_class]
    return first, counts


class MatchingClasses(NamedTuple):
    """Equivalence classes of rows that are generalised to the same levels, and who may be in them.

    Attributes
    ----------
    classes : int
        How many classes there are.
    rows, row_class : int64 arrays of shape (rows,)
        The rows and the class of each.
    persons, person_class : int64 arrays of shape (persons,)
        Who may be in a class, and in which one.
    """

    classes: int
    rows: Whole
    row_class: Whole
    persons: Whole
    person_class: Whole


def matching_classes(
    people: pa.Table, table: pa.Table, on: Sequence[str], hierarchies: Mapping[str, HierarchyRows]
) -> Iterator[MatchingClasses]:
    """Yield the classes of a table that persons may be in, for each combination of levels in it.

    Parameters
    ----------
    people, table : pyarrow.Table
    on : sequence of str
    hierarchies : mapping of str to rows

    Yields
    ------
    MatchingClasses
    """
    columns = [_Column.of(name, people, table, hierarchies.get(name)) for name in on]
    levels = np.stack([column.levels[column.released] for column in columns])
    for vector in np.unique(levels, axis=1).T:
        chosen = np.flatnonzero((levels == vector[:, None]).all(axis=0))
        ours, theirs = np.zeros(len(chosen), dtype=np.int64), np.zeros(people.num_rows, dtype=np.int64)
        size = 1
        for column, level in zip(columns, vector.tolist(), strict=True):
            width = len(column.levels) + 1
            if size * width >= 2**62:
                ours, theirs, size = _compressed(ours, theirs)
            ours = ours * width + column.released[chosen]
            theirs = theirs * width + column.labels[level][column.held]
            size *= width
        keys, row_class = np.unique(ours, return_inverse=True)
        place = np.minimum(np.searchsorted(keys, theirs), len(keys) - 1)
        persons = np.flatnonzero(keys[place] == theirs)
        yield MatchingClasses(len(keys), chosen, row_class.astype(np.int64), persons, place[persons])


def _compressed(ours: Whole, theirs: Whole) -> tuple[Whole, Whole, int]:
    keys, codes = np.unique(np.concatenate([ours, theirs]), return_inverse=True)
    return codes[: len(ours)].astype(np.int64), codes[len(ours) :].astype(np.int64), len(keys)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of both tables in codes of the release's labels.

    Parameters
    ----------
    released : int64 array of shape (rows,)
        The label of each row.
    levels : int64 array of shape (labels,)
        The level of each label.
    held : int64 array of shape (people,)
        The value of each person.
    labels : list of int64 arrays of shape (values,)
        For each level, the label of each value; one more than the last where the release does not have it.
    """

    released: Whole
    levels: Whole
    held: Whole
    labels: list[Whole]

    @classmethod
    def of(cls, name: str, people: pa.Table, table: pa.Table, hierarchy: HierarchyRows | None) -> _Column:
        released, names = _encoded(table.column(name))
        held, values = _encoded(people.column(name))
        codes = {label: code for code, label in enumerate(names) if label is not None}
        absent = len(names)
        if hierarchy is None:
            held_codes = [absent if value is None else codes.get(value, absent) for value in values]
            labels = [np.array(held_codes, dtype=np.int64)]
            return cls(released, np.zeros(absent, dtype=np.int64), held, labels)
        chains = _chains(name, hierarchy)
        level_of = _levels(name, chains)
        if any(label not in level_of for label in names if label is not None):
            rule = f"have every label of the release's column {name!r}"
            _check.refuse_state(f"hierarchies[{name!r}]", rule, "some are missing", "add their rows")
        if any(value not in chains for value in values if value is not None):
            rule = f"have every value of the persons' column {name!r}"
            _check.refuse_state(f"hierarchies[{name!r}]", rule, "some are missing", "add their rows")
        height = max(level_of.values()) + 1
        labels = [
            np.array(
                [absent if value is None else codes.get(chains[value][level], absent) for value in values],
                dtype=np.int64,
            )
            for level in range(height)
        ]
        levels = np.array([0 if label is None else level_of[label] for label in names], dtype=np.int64)
        return cls(released, levels, held, labels)


def _encoded(column: pa.ChunkedArray) -> tuple[Whole, list[str | None]]:
    """Return codes and the texts that they stand for; the last one stands for NULL, which equals nothing."""
    encoded = column.dictionary_encode().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # a table without rows
        return np.zeros(0, dtype=np.int64), [None]
    texts = [None if value is None else str(value) for value in encoded.dictionary.to_pylist()]
    codes = encoded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, [*texts, None]


def _chains(name: str, hierarchy: HierarchyRows) -> dict[str, list[str]]:
    rows = hierarchy.rows() if isinstance(hierarchy, GeneralizationHierarchy) else hierarchy
    chains = {str(row[0]): [str(label) for label in row] for row in rows}
    if not chains or len({len(chain) for chain in chains.values()}) != 1:
        remedy = "give every value a label at each level"
        _check.refuse_state(
            f"hierarchies[{name!r}]", "have rows of one length", "it has none, or several", remedy
        )
    return chains


def _levels(name: str, chains: Mapping[str, list[str]]) -> dict[str, int]:
    """Return for each label a level at which all values have it that have it at all, or refuse."""
    level_of: dict[str, int] = {}
    for chain in chains.values():
        for label in set(chain):
            level_of[label] = max(chain.index(label), level_of.get(label, 0))
    for chain in chains.values():
        if any(chain[level_of[label]] != label for label in chain):
            remedy = "give the labels of each level names of their own"
            _check.refuse_state(
                f"hierarchies[{name!r}]", "have a label at one level", "one is at two", remedy
            )
    return level_of


def check_columns(name: str, table: pa.Table, on: Sequence[str]) -> None:
    """Refuse a table without rows, or without one of some columns."""
    if not on:
        _check.refuse("on", "name at least one column", on, "pass the columns that both tables have")
    for column in on:
        if column not in table.column_names:
            _check.refuse(
                "on", f"be columns of {name}: {', '.join(table.column_names)}", column, "rename its columns"
            )
    if not table.num_rows:
        _check.refuse_state(name, "have rows", "it has none", "pass one with rows")
