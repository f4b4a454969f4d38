"""The types of persons that published tables may count: every combination of some attributes' values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check

__all__ = ["Person", "PersonTypes", "Where"]

Person = tuple[Hashable, ...]
Where = Mapping[str, Any]
_MOST = 5_000_000


@final
class PersonTypes:
    """Every combination of attributes' values, but for those said to be impossible.

    Parameters
    ----------
    attributes : mapping of str to sequence
        The values that each attribute may have.
    impossible : sequence of mappings
        Combinations that nobody has: of each named attribute one value or several.

    Raises
    ------
    ParameterError
        If there is no attribute, a value is named twice or unknown, or there are over 5 million types.

    Examples
    --------
    >>> types = PersonTypes({"age": range(3), "sex": ("F", "M"), "married": (False, True)},
    ...                     impossible=[{"age": range(2), "married": True}])
    >>> len(types), types.person(0)
    (8, (0, 'F', False))
    """

    def __init__(
        self, attributes: Mapping[str, Sequence[Hashable]], impossible: Sequence[Where] = ()
    ) -> None:
        self.attributes = {name: tuple(values) for name, values in attributes.items()}
        size = 1
        for name, values in self.attributes.items():
            if not values or len(set(values)) != len(values):
                _check.refuse_state(
                    f"attributes[{name!r}]",
                    "have values, each once",
                    "it has none, or one twice",
                    "list each once",
                )
            size *= len(values)
        if not self.attributes or size > _MOST:
            remedy = "bin its attributes, or attack blocks one by one"
            _check.refuse("attributes", f"make from 1 to {_MOST:,} combinations", size, remedy)
        self._codes = {
            name: {value: code for code, value in enumerate(values)}
            for name, values in self.attributes.items()
        }
        self._shape = tuple(len(values) for values in self.attributes.values())
        cells = np.indices(self._shape, dtype=np.int32).reshape(len(self._shape), -1)
        self.codes: NDArray[np.int32] = cells
        possible = np.ones(size, dtype=bool)
        for rule in impossible:
            possible &= ~self.mask(rule)
        self.codes = np.ascontiguousarray(cells[:, possible])
        self._place = np.full(size, -1, dtype=np.int64)
        self._place[possible] = np.arange(self.codes.shape[1])

    def __len__(self) -> int:
        return int(self.codes.shape[1])

    def mask(self, where: Where) -> NDArray[np.bool_]:
        """Return which types meet conditions: for each named attribute one value, or any of several.

        Parameters
        ----------
        where : mapping of str to a value, or to a list, tuple, set or range of values

        Returns
        -------
        bool array of shape (types,)

        Raises
        ------
        ParameterError
            If an attribute or a value is unknown.
        """
        found = np.ones(self.codes.shape[1], dtype=bool)
        for name, values in where.items():
            found &= np.isin(self.codes[self._position(name)], self._value_codes(name, values))
        return found

    def _position(self, name: str) -> int:
        """Return which attribute, in their order, has a name."""
        if name not in self.attributes:
            _check.refuse(
                "attribute", f"be one of {', '.join(self.attributes)}", name, "see types.attributes"
            )
        return list(self.attributes).index(name)

    def _value_codes(self, name: str, values: Any) -> list[int]:
        """Return the codes of one value or several of an attribute."""
        self._position(name)
        several = values if isinstance(values, list | tuple | set | frozenset | range) else (values,)
        unknown = [value for value in several if value not in self._codes[name]]
        if unknown:
            _check.refuse(
                f"value of {name}", "be one of its attribute's values", unknown[0], "see types.attributes"
            )
        return [self._codes[name][value] for value in several]

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return an attribute's number for each type.

        Parameters
        ----------
        name : str
            Of an attribute all of whose values are numbers.

        Returns
        -------
        float64 array of shape (types,)
        """
        position = self._position(name)
        try:
            values = np.array([float(value) for value in self.attributes[name]])  # type: ignore[arg-type]
        except (TypeError, ValueError):
            _check.refuse(
                "attribute", "have numbers as its values, for a mean or a median", name, "ask of another one"
            )
        return np.asarray(values[self.codes[position]])

    def person(self, place: int) -> Person:
        """Return the values of the type at a place.

        Parameters
        ----------
        place : int
            From 0 to one less than the number of types.

        Returns
        -------
        tuple
        """
        return tuple(
            values[code]
            for values, code in zip(self.attributes.values(), self.codes[:, place].tolist(), strict=True)
        )

    def counts(self, persons: Iterable[Person]) -> NDArray[np.int64]:
        """Return how often each type is among some persons.

        Parameters
        ----------
        persons : iterable of tuples
            Each with a value for every attribute, in their order.

        Returns
        -------
        int64 array of shape (types,)

        Raises
        ------
        ParameterError
            If someone is of no type.
        """
        counts = np.zeros(len(self), dtype=np.int64)
        for person, count in Counter(map(tuple, persons)).items():
            known = len(person) == len(self.attributes) and all(
                value in self._codes[name] for name, value in zip(self.attributes, person, strict=True)
            )
            place = -1
            if known:
                codes = [
                    self._codes[name][value] for name, value in zip(self.attributes, person, strict=True)
                ]
                place = int(self._place[np.ravel_multi_index(codes, self._shape)])
            if place < 0:
                _check.refuse_type(
                    "persons",
                    "be of possible types, with a value for each attribute",
                    person,
                    "pass tuples in the order of the attributes",
                )
            counts[place] += count
        return counts

    def persons(self, counts: NDArray[np.int64]) -> list[Person]:
        """Return persons, each as often as its type is counted.

        Parameters
        ----------
        counts : int array of shape (types,)

        Returns
        -------
        list of tuples
        """
        return [self.person(int(place)) for place in np.repeat(np.arange(len(self)), counts)]

    def bins(self, name: str, groups: Collection[Any] | None) -> NDArray[np.int32]:
        """Return for each type its group of an attribute's values, or -1.

        Parameters
        ----------
        name : str
        groups : sequence of values or of collections of values, optional
            Every value by itself if left out.

        Returns
        -------
        int32 array of shape (types,)
        """
        codes = self.codes[self._position(name)]
        if groups is None:
            return np.asarray(codes)
        table = np.full(len(self.attributes[name]), -1, dtype=np.int32)
        for number, group in enumerate(groups):
            members = self._value_codes(name, group)
            if (table[members] >= 0).any():
                _check.refuse_state(
                    f"groups of {name}", "be disjoint", "a value is in two", "drop it from one"
                )
            table[members] = number
        return np.asarray(table[codes])
