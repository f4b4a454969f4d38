"""Constraints between columns, as structural zeros: declared, never read off the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.synthetic.domain.attributes import Attribute, Ordered
from sfumato.synthetic.domain.cell_conditions import condition_cells
from sfumato.synthetic.domain.structural_zeros import StructuralZero

__all__ = ["ColumnConstraint", "ColumnOrder", "Implication", "described_constraint"]

_WRITE: Final = 'write when = {age = "< 15"} and then = {marital = "never"}, or order = ["start", "end"]'


@final
@dataclass(frozen=True, slots=True)
class Implication:
    """A constraint: where some columns are this, other columns are that.

    Parameters
    ----------
    when : mapping of str to label, list of labels or comparison
        By column what it is, or may be; a comparison is a text such as ``"< 15"``. All of them together.
    then : mapping of str to label, list of labels or comparison
        What other columns are then. A NULL is no violation, as in SQL's CHECK, nor is it what ``when`` asks
        for, unless None is listed; an undeclared value is a violation of a list that does not have its label
        ``"(other)"``.

    Raises
    ------
    ParameterError
        If they are no mappings of different columns.

    Notes
    -----
    It is about cells. A comparison must fall between two bins; all values of a bin are taken to be within its
    edges, also at the ends of the scale.

    Examples
    --------
    >>> from sfumato.synthetic import Ordered, TableDomain
    >>> domain = TableDomain(age=Ordered(0, 90, bins=6), marital=["never", "married", "widowed"])
    >>> domain = domain.with_constraints(Implication({"age": "< 15"}, {"marital": "never"}))
    >>> domain.structural_zeros
    (((0, (0,)), (1, (1, 2))),)
    """

    when: Mapping[str, Any]
    then: Mapping[str, Any]

    def __post_init__(self) -> None:
        sides: list[tuple[str, object]] = [("when", self.when), ("then", self.then)]
        for name, given in sides:
            if not isinstance(given, Mapping) or not given:
                _check.refuse_type(name, "be a mapping of columns to what they are", given, _WRITE)
        twice = sorted(map(str, self.when.keys() & self.then.keys()))
        if twice:
            _check.refuse("then", "be of other columns than when", twice[0], "leave it out of one of them")

    def zeros(self, attributes: Mapping[str, Attribute]) -> tuple[StructuralZero, ...]:
        """Return the combinations of cells that violate it, one for each column of ``then``.

        Parameters
        ----------
        attributes : mapping of str to Categorical or Ordered

        Returns
        -------
        tuple of StructuralZero

        Raises
        ------
        ParameterError
            If a column or label is not declared, or nothing is forbidden.
        """
        when = [_place(attributes, name, given, holds=True) for name, given in self.when.items()]
        then = [_place(attributes, name, given, holds=False) for name, given in self.then.items()]
        return tuple(tuple(sorted([*when, each])) for each in then)


@final
@dataclass(frozen=True, slots=True)
class ColumnOrder:
    """A constraint: one ordered column is at most another one, as a start and an end.

    Parameters
    ----------
    first, second : str
        Two columns of numbers, or two of dates.
    strict : bool
        Whether they may not be equal.

    Raises
    ------
    ParameterError
        If they are not two names.

    Notes
    -----
    It is about cells: those pairs are forbidden in which no value of the first column is at most one of the
    second. The bins at the ends of a scale also count the values beyond it, so that these are allowed for;
    the cell of a whole number is that number. Two bins that overlap may be together, so that of numbers which
    are drawn within bins the first can still be the larger one: declare narrow bins, or whole numbers, where
    that matters.

    Examples
    --------
    >>> from sfumato.synthetic import Ordered, TableDomain
    >>> domain = TableDomain(start=Ordered.integers(0, 2), end=Ordered.integers(0, 2))
    >>> domain.with_constraints(ColumnOrder("start", "end")).structural_zeros
    (((0, (1,)), (1, (0,))), ((0, (2,)), (1, (0, 1))))
    """

    first: str
    second: str
    strict: bool = False

    def __post_init__(self) -> None:
        names: list[object] = [self.first, self.second]
        if not all(isinstance(name, str) for name in names) or self.first == self.second:
            _check.refuse("order", "be of two different columns", names, _WRITE)
        if not isinstance(self.strict, bool):
            _check.refuse("strict", "be True or False", self.strict, "leave it out for False")

    def zeros(self, attributes: Mapping[str, Attribute]) -> tuple[StructuralZero, ...]:
        """Return the combinations of cells that violate it.

        Parameters
        ----------
        attributes : mapping of str to Categorical or Ordered

        Returns
        -------
        tuple of StructuralZero
            One for each set of cells of the second column.

        Raises
        ------
        ParameterError
            If a column is not declared, or is not ordered, or one is of dates and the other is not.
        """
        one, two = (_ordered(attributes, name) for name in (self.first, self.second))
        if one.dated is not two.dated:
            found = "one is of dates and one of numbers"
            _check.refuse_state("order", "be of two columns of numbers, or of dates", found, _WRITE)
        lowest = np.array(one.numbers[:-1])
        highest = np.array(two.numbers[:-1] if two.whole else two.numbers[1:])
        if not one.whole:
            lowest[0] = -np.inf
        if not two.whole:
            highest[-1] = np.inf
        # A bin does not hold its right edge; a whole number is all of its cell.
        equal = self.strict or not two.whole
        beyond = (np.greater_equal if equal else np.greater)(lowest[:, None], highest[None])
        places = [list(attributes).index(name) for name in (self.first, self.second)]
        joined: dict[tuple[int, ...], list[int]] = {}
        for cell, row in enumerate(beyond):
            if row.any():
                joined.setdefault(tuple(np.flatnonzero(row).tolist()), []).append(cell)
        return tuple(
            tuple(sorted(zip(places, (tuple(cells), forbidden), strict=True)))
            for forbidden, cells in joined.items()
        )


ColumnConstraint: TypeAlias = Implication | ColumnOrder


def described_constraint(given: Any) -> ColumnConstraint:
    """Return the constraint that a table of TOML describes.

    Parameters
    ----------
    given : dict
        With ``when`` and ``then``, or with ``order`` and perhaps ``strict``.

    Returns
    -------
    Implication or ColumnOrder

    Raises
    ------
    ParameterError
        If it describes none.

    Examples
    --------
    >>> described_constraint({"order": ["start", "end"]})
    ColumnOrder(first='start', second='end', strict=False)
    """
    if isinstance(given, dict) and given.keys() == {"when", "then"}:
        return Implication(given["when"], given["then"])
    if isinstance(given, dict) and "order" in given and given.keys() <= {"order", "strict"}:
        order = given["order"]
        if isinstance(order, list) and len(order) == 2:
            return ColumnOrder(order[0], order[1], given.get("strict", False))
    return _check.refuse_type("constraints", "have when and then, or order alone", given, _WRITE)


def _attribute(attributes: Mapping[str, Attribute], name: object) -> Attribute:
    if not isinstance(name, str) or name not in attributes:
        _check.refuse(
            "constraints", f"be of columns among {list(attributes)}", name, "declare it in the domain"
        )
    return attributes[name]


def _ordered(attributes: Mapping[str, Attribute], name: str) -> Ordered:
    found = _attribute(attributes, name)
    if not isinstance(found, Ordered):
        rule = "be of ordered columns"
        _check.refuse_state("order", rule, f"{name!r} is categorical", "declare it Ordered")
    return found


def _place(
    attributes: Mapping[str, Attribute], name: str, given: Any, *, holds: bool
) -> tuple[int, tuple[int, ...]]:
    """Return a column, and the cells in which a condition holds, or does not."""
    found = condition_cells(name, _attribute(attributes, name), given)[0 if holds else 1]
    _refuse_none(name, found, holds=holds)
    return list(attributes).index(name), tuple(np.flatnonzero(found).tolist())


def _refuse_none(name: str, found: NDArray[np.bool_], *, holds: bool) -> None:
    if not found.any():
        rule = "hold in some cell" if holds else "leave out some cell"
        _check.refuse_state(f"condition on {name!r}", rule, "it does in none", "leave it out, or correct it")
