"""Combinations of cells that cannot be: declared, so that no noise is shown in them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.synthetic.domain.attributes import Attribute, Codes

__all__ = [
    "StructuralZero",
    "impossible_rows",
    "labelled_cells",
    "possible_cells",
    "require_few",
    "require_labels",
    "structural_zeros",
    "zero_labels",
]

StructuralZero: TypeAlias = tuple[tuple[int, tuple[int, ...]], ...]
"""Columns by number, rising, and the cells of each whose combinations cannot be."""

_MOST: Final = 1 << 12
_REMEDY: Final = 'write {"age": range(15), "marital": ["married"]}, cells by their labels'


def structural_zeros(attributes: Mapping[str, Attribute], given: Any) -> tuple[StructuralZero, ...]:
    """Return combinations of labels by the numbers of their columns and cells.

    Parameters
    ----------
    attributes : mapping of str to Categorical or Ordered
    given : sequence of mapping of str to sequence
        Of each combination the labels by column.

    Returns
    -------
    tuple

    Raises
    ------
    ParameterError
        If one names no cell, or leaves none.
    """
    if not isinstance(given, list | tuple):
        _check.refuse_type("zeros", "be a list of objects", given, "pass what to_json returned")
    require_few(len(given))
    return tuple(_one(attributes, each) for each in given)


def _one(attributes: Mapping[str, Attribute], given: Any) -> StructuralZero:
    if not isinstance(given, Mapping) or not given:
        _check.refuse_type("zeros", "be mappings of columns to lists of labels", given, _REMEDY)
    names, found = list(attributes), []
    for name, labels in given.items():
        if name not in attributes:
            _check.refuse("zeros", f"be of columns among {names}", name, "declare it in the domain")
        if isinstance(labels, str | bytes) or not isinstance(labels, Sequence) or not len(labels):
            _check.refuse_type("zeros", "have a list of labels for each column", labels, _REMEDY)
        found.append((names.index(name), labelled_cells(f"zeros of {name!r}", attributes[name], labels)))
    if all(len(cells) == attributes[names[place]].size for place, cells in found):
        _check.refuse_state("zeros", "leave some cell", "one leaves none", "list fewer labels")
    return tuple(sorted(found))


def require_few(count: int) -> None:
    """Refuse more combinations than a domain holds.

    Parameters
    ----------
    count : int
    """
    if count > _MOST:
        _check.refuse("zeros", f"be at most {_MOST}", count, "join those that differ in one column")


def require_labels(attributes: Mapping[str, Attribute], zeros: Sequence[StructuralZero]) -> None:
    """Refuse combinations of columns with two cells of one label, which no document tells apart.

    Parameters
    ----------
    attributes : mapping of str to Categorical or Ordered
    zeros : sequence of StructuralZero
    """
    names = list(attributes)
    for name in sorted({names[place] for zero in zeros for place, _ in zero}):
        _known(f"column {name!r}", attributes[name])


def _known(what: str, attribute: Attribute) -> dict[tuple[bool, Any], int]:
    """Return the cells by label, which must differ; a truth value is no number, though True equals 1."""
    known = {(isinstance(label, bool), label): cell for cell, label in enumerate(attribute.labels)}
    if len(known) < attribute.size:
        rule, found = "have bins of different labels where zeros are about it", "two have the same"
        _check.refuse_state(what, rule, found, "take wider bins, or count from a later beginning")
    return known


def labelled_cells(what: str, attribute: Attribute, labels: Sequence[Any]) -> tuple[int, ...]:
    """Return the cells of some labels, rising.

    Parameters
    ----------
    what : str
        What the labels are of, for messages.
    attribute : Categorical or Ordered
    labels : sequence

    Returns
    -------
    tuple of int

    Raises
    ------
    ParameterError
        If there is no such label, or two cells have the same.
    """
    known = _known(what, attribute)
    for label in labels:
        single = isinstance(label, Hashable) and not isinstance(label, tuple)
        if not single or (isinstance(label, bool), label) not in known:
            _check.refuse(what, "be labels of its cells", label, "see the column's labels")
    return tuple(sorted({known[isinstance(label, bool), label] for label in labels}))


def zero_labels(attributes: Mapping[str, Attribute], zero: StructuralZero) -> dict[str, list[Any]]:
    """Return what `structural_zeros` reads as a combination."""
    names, found = list(attributes), {}
    for place, cells in zero:
        labels = attributes[names[place]].labels
        found[names[place]] = [labels[cell] for cell in cells]
    return found


def impossible_rows(codes: Codes, sizes: Sequence[int], zeros: Sequence[StructuralZero]) -> NDArray[np.bool_]:
    """Return which rows are in cells that cannot be.

    Parameters
    ----------
    codes : int64 array of shape (rows, columns)
        None of them negative.
    sizes : sequence of int
        Cells of each column.
    zeros : sequence of StructuralZero

    Returns
    -------
    bool array of shape (rows,)

    Examples
    --------
    >>> impossible_rows(np.array([[0, 1], [1, 1]]), (2, 2), [((0, (0,)), (1, (0, 1)))]).tolist()
    [True, False]
    """
    found = np.zeros(len(codes), bool)
    for zero in zeros:
        inside = np.ones(len(codes), bool)
        for place, cells in zero:
            inside &= _marked(sizes[place], cells)[codes[:, place]]
        found |= inside
    return found


def possible_cells(
    clique: Sequence[int], sizes: Sequence[int], zeros: Sequence[StructuralZero]
) -> NDArray[np.bool_]:
    """Return which cells of a table can hold a row.

    Parameters
    ----------
    clique : sequence of int
        The table's columns.
    sizes : sequence of int
        Cells of all columns.
    zeros : sequence of StructuralZero
        Those of columns that the table lacks forbid none of its cells.

    Returns
    -------
    bool array, an axis for each column of the table

    Examples
    --------
    >>> possible_cells((0, 1), (2, 3), [((0, (0,)), (1, (1, 2)))]).tolist()
    [[True, False, False], [True, True, True]]
    """
    possible = np.ones([sizes[place] for place in clique], bool)
    for zero in zeros:
        marked = {place: _marked(sizes[place], cells) for place, cells in zero}
        if marked.keys() <= set(clique):
            inside = np.ones(possible.shape, bool)
            for axis, place in enumerate(clique):
                if place in marked:
                    shape = [-1 if each == axis else 1 for each in range(len(clique))]
                    inside &= marked[place].reshape(shape)
            possible &= ~inside
    return possible


def _marked(size: int, cells: Sequence[int]) -> NDArray[np.bool_]:
    marked = np.zeros(size, bool)
    marked[list(cells)] = True
    return marked
