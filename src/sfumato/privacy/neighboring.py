"""Neighboring relations: which two datasets a guarantee cannot distinguish.

Most of the time it is one of three, the members of `Neighboring`:

>>> from sfumato.privacy import Gaussian, Neighboring
>>> Gaussian(1.0, neighboring=Neighboring.REPLACE_ONE).neighboring
<Neighboring.REPLACE_ONE: 'replace-one'>

`Relation` is their base class. A field of privacy with another idea of neighbors (several records of one
person, points on a map at most some distance apart, pairs of secrets) states it as a frozen subclass with
parameters, and registers it under a name for serialised losses:

>>> from dataclasses import dataclass
>>> from fractions import Fraction
>>> from sfumato._wire import RATIONAL
>>> @dataclass(frozen=True)
... class WithinRadius(Relation):
...     metres: Fraction
...     composes = True
...     def __str__(self):
...         return f"move one point by at most {self.metres} m"
>>> register_relation("example-radius", WithinRadius, {"metres": RATIONAL})
>>> RELATION.encode(WithinRadius(Fraction(200)))
{'relation': 'example-radius', 'metres': '200/1'}

Code that derives a sensitivity from the relation asks for a `Neighboring`, of which there are three and no
more, so that a further relation is never taken for one of them. Guarantee: a loss whose theorem is about
these three only, and a sum of losses under a relation that does not compose, are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, unique
from typing import Any, ClassVar, Final, cast

from sfumato._check import refuse, refuse_type
from sfumato._wire import Codec, Field, Names, Record
from sfumato.errors import NeighboringMismatch

__all__ = ["RELATION", "Neighboring", "Relation", "common_relation", "refuse_further", "register_relation"]


class Relation:
    """A symmetric relation between datasets, as a frozen value that can be hashed and compared.

    A subclass defines ``__str__``, which says in words what changes from neighbor to neighbor. It is
    registered with `register_relation` where losses under it are serialised.

    Attributes
    ----------
    composes : bool
        Whether the losses of several mechanisms on one dataset add under it. That is so where neighbors are
        two fixed datasets, and False unless a subclass says so: where they are distributions of datasets, as
        in Pufferfish privacy, composition fails in general.

    Examples
    --------
    >>> from sfumato.privacy import Neighboring
    >>> isinstance(Neighboring.ADD_REMOVE, Relation), Relation.composes, Neighboring.ADD_REMOVE.composes
    (True, False, True)
    """

    __slots__ = ()

    composes: ClassVar[bool] = False


class _OneUnit(Relation):
    """A relation between two fixed datasets, which differ in one privacy unit."""

    __slots__ = ()

    composes = True


@unique
class Neighboring(_OneUnit, Enum):
    """How two datasets that must look alike may differ in one privacy unit.

    The values are the names that serialised losses and ledgers store.

    Attributes
    ----------
    ADD_REMOVE
        One unit, with all its records, is present in one dataset and absent from the other.
    REPLACE_ONE
        One unit's records are exchanged for any other records; the number of units is public.
    ZERO_OUT
        One unit's records are exchanged for a fixed neutral value; the number of units is public.

    Examples
    --------
    >>> str(Neighboring.ADD_REMOVE)
    'add/remove one unit'
    >>> Neighboring("replace-one") is Neighboring.REPLACE_ONE
    True
    """

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"
    ZERO_OUT = "zero-out"

    def __str__(self) -> str:
        return _SENTENCES[self] + " one unit"


_SENTENCES: Final = {
    Neighboring.ADD_REMOVE: "add/remove",
    Neighboring.REPLACE_ONE: "replace",
    Neighboring.ZERO_OUT: "zero out",
}
_BY_TEXT: Final = {
    "add-remove": Neighboring.ADD_REMOVE,
    "replace-one": Neighboring.REPLACE_ONE,
    "zero-out": Neighboring.ZERO_OUT,
}
_THREE: Final = Names("a neighboring relation", _BY_TEXT)
_FURTHER: Final[dict[str, Record[Relation]]] = {}
_NAMES: Final[dict[type[Relation], str]] = {}


def register_relation(name: str, kind: type[Relation], fields: Mapping[str, Codec[Any] | Field]) -> None:
    """Say how a further relation is serialised: as an object of its name and its parameters.

    Parameters
    ----------
    name : str
        Its name in serialised losses; never changed, never used again for another relation.
    kind : type
        The subclass of `Relation`; its constructor takes the parameters by keyword.
    fields : mapping of str to Codec or Field
        How its parameters are written, by wire name. None of them may be called ``relation``.

    Raises
    ------
    ValueError
        If the name or the class is registered already: a mistake of the calling module.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from sfumato._wire import INTEGER
    >>> @dataclass(frozen=True)
    ... class WithinDays(Relation):
    ...     days: int
    ...     composes = True
    ...     def __str__(self):
    ...         return f"move one event by at most {self.days} days"
    >>> register_relation("example-days", WithinDays, {"days": INTEGER})
    >>> str(WithinDays(3))
    'move one event by at most 3 days'
    """
    if name in _BY_TEXT or name in _FURTHER or kind in _NAMES or "relation" in fields:
        raise ValueError(f"the relation {name} needs a name, a class and field names of its own")
    _FURTHER[name] = Record(f"a relation {name}", kind, fields)
    _NAMES[kind] = name


def _encode(relation: Relation) -> object:
    if isinstance(relation, Neighboring):
        return _THREE.encode(relation)
    if type(relation) not in _NAMES:
        remedy = "call register_relation where the class is defined"
        refuse_type("neighboring", "be registered to be serialised", relation, remedy)
    name = _NAMES[type(relation)]
    return {"relation": name, **cast("dict[str, object]", _FURTHER[name].encode(relation))}


def _decode(name: str, written: Any) -> Relation:
    if not isinstance(written, dict):
        return _THREE.decode(name, written)
    further = written.get("relation")
    if not isinstance(further, str) or further not in _FURTHER:
        shown = further[:40] if isinstance(further, str) else type(further).__name__
        remedy = "import the part of sfumato that defines the relation, or install a newer sfumato"
        refuse(name, "name a relation that is known here", shown, remedy)
    return _FURTHER[further].decode(name, {key: v for key, v in written.items() if key != "relation"})


RELATION: Final[Codec[Relation]] = Codec(_encode, _decode)
"""One of three texts, or for a further relation an object with its name and its parameters."""


def refuse_further(what: str, relation: Relation | None) -> None:
    """Refuse a further relation where a theorem is about the three members of `Neighboring` only.

    Parameters
    ----------
    what : str
        The loss or the step, for the message.
    relation : Relation or None

    Raises
    ------
    NeighboringMismatch
    """
    if relation is not None and not isinstance(relation, Neighboring):
        raise NeighboringMismatch(
            f"neighboring must be add/remove, replace-one or zero-out for {what}, got {str(relation)!r}; no "
            "theorem is known here for another relation: bound the mechanism under it by itself, as a "
            "declared loss such as PureDP(epsilon, neighboring=...)"
        )


def common_relation(relations: Iterable[Relation | None]) -> Relation | None:
    """Return the one relation of several losses, or None if all of them are about none.

    Raises
    ------
    NeighboringMismatch
        If there are two.
    """
    found = set(relations) - {None}
    if len(found) > 1:
        raise NeighboringMismatch(
            f"losses must protect one neighboring relation, got {' and '.join(sorted(map(str, found)))}; "
            "state every loss under the same relation before composing"
        )
    return found.pop() if found else None
