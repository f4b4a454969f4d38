"""What every stored or sent document has in common: a format with a version, and wire names of its own.

A serialised value must be readable for as long as anybody stores it, however the code is renamed. So nothing
that is written is named after Python: each kind of value states its wire name and, field by field, the name
and the codec that stand for an attribute. Renaming a class or an attribute changes the right-hand side of
such a table and never the bytes.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Point:
...     x: int
...     label: str | None
>>> point = Record("a point", Point, {"x": INTEGER, "name": Field("label", optional(TEXT))})
>>> point.encode(Point(3, None))
{'x': 3, 'name': None}
>>> point.decode("given", {"x": 3, "name": "here"})
Point(x=3, label='here')
>>> canonical(Format("sfumato.example", 1).wrap({"x": 3}))
'{"format":"sfumato.example","version":1,"x":3}'
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Generic, NoReturn, TypeVar

from sfumato._check import refuse, refuse_state, refuse_type

__all__ = [
    "BOOLEAN",
    "BYTES",
    "INTEGER",
    "NUMBER",
    "RATIONAL",
    "TEXT",
    "Codec",
    "Field",
    "Format",
    "Names",
    "Record",
    "canonical",
    "optional",
    "parse",
    "sequence",
]

_REMEDY: Final = "pass what sfumato wrote, in this or an earlier version"
_NEWER: Final = "install a newer sfumato"
_MAX_RATIONAL: Final = 2600
"""Characters of the longest rational that is read."""

T = TypeVar("T")


def canonical(document: object) -> str:
    """Return the one JSON text of a document: sorted keys, no white space, ASCII only, no NaN or infinity.

    >>> canonical({"b": 0.1, "a": [1, "x"]})
    '{"a":[1,"x"],"b":0.1}'
    """
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def parse(name: str, text: str | bytes) -> Any:
    """Return the document of a JSON text, each key of it once and each number finite.

    Parameters
    ----------
    name : str
        The parameter that holds the text, for messages.
    text : str or bytes

    Raises
    ------
    ParameterError
        If it is no such text; nothing of it is quoted.
    """
    if not isinstance(text, str | bytes):
        refuse_type(name, "be JSON text", text, _REMEDY)
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except (ValueError, RecursionError):
        rule = "be well-formed JSON with each key once and finite numbers"
        refuse_state(name, rule, "it is other text", _REMEDY)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError
    return document


def _constant(constant: str) -> NoReturn:
    raise ValueError(constant)


@dataclass(frozen=True, slots=True)
class Format:
    """The name of a kind of document and the newest version of it that is written and read here.

    Parameters
    ----------
    name : str
        Such as ``sfumato.loss``; never changed once a document was written.
    version : int
        From 1; each later one reads what all earlier ones wrote, from ``oldest`` on.
    oldest : int
        The oldest version that is read. An earlier one is refused by its number.
    """

    name: str
    version: int = 1
    oldest: int = 1

    def wrap(self, fields: Mapping[str, object]) -> dict[str, object]:
        """Return the document: the fields after the format and its version."""
        return {"format": self.name, "version": self.version, **fields}

    def unwrap(
        self, name: str, document: object, *, known: Set[str] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Return a document's version and its fields.

        Parameters
        ----------
        name : str
            The parameter that holds the document, for messages.
        document : object
            What `wrap` made, perhaps by way of JSON.
        known : set of str, optional
            All fields that it may have; left out where its reader looks at them.

        Raises
        ------
        ParameterError
            If it is of another format, of a version that is not known here, or has an unknown field.
        """
        if not isinstance(document, dict) or document.get("format") != self.name:
            _refuse(name, f"be a document of the format {self.name}", document)
        version = document.get("version")
        if type(version) is not int or not self.oldest <= version <= self.version:
            rule = f"have a version of {self.name} from {self.oldest} to {self.version}"
            late = type(version) is int and 1 <= version < self.oldest
            remedy = "have it written anew: it is of before the first release" if late else _NEWER
            _refuse(name, rule, version, remedy)
        fields = {key: value for key, value in document.items() if key not in ("format", "version")}
        if known is not None and (unknown := fields.keys() - known):
            refuse(name, "have only fields that are known here", sorted(unknown), _NEWER)
        return version, fields


def _refuse(name: str, rule: str, written: object, remedy: str = _REMEDY) -> NoReturn:
    """Refuse what was read; a number is shown as it is, and of anything else only the type."""
    if written is None or isinstance(written, bool | int | float):
        refuse(name, rule, written, remedy)
    refuse_type(name, rule, written, remedy)


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """How one kind of value is written as a part of a JSON document, and read back.

    Parameters
    ----------
    encode : callable
        From the value to what JSON can hold.
    decode : callable
        From ``(name, written)`` to the value; raises `ParameterError` for what was never written.
    """

    encode: Callable[[T], object]
    decode: Callable[[str, Any], T]


def _typed(kind: type[T], rule: str) -> Codec[T]:
    def checked(name: str, written: Any) -> T:
        if type(written) is not kind:
            _refuse(name, rule, written)
        value: T = written
        return value

    return Codec(lambda value: value, checked)


def _read_number(name: str, written: Any) -> float:
    try:
        number = float(written) if type(written) in (int, float) or written in ("inf", "-inf") else math.nan
    except OverflowError:  # an integer beyond all floats
        number = math.nan
    if math.isnan(number) or (type(written) is float and math.isinf(number)):
        _refuse(name, "be a number", written)
    return number


def _read_rational(name: str, written: Any) -> Fraction:
    top, _, bottom = written.partition("/") if isinstance(written, str) else ("", "", "")
    digits = top.removeprefix("-"), bottom
    if len(top + bottom) > _MAX_RATIONAL or not all(part.isascii() and part.isdigit() for part in digits):
        _refuse(name, "be written as p/q", written)
    if not int(bottom):
        _refuse(name, "have a denominator other than 0", written)
    return Fraction(int(top), int(bottom))


def _read_bytes(name: str, written: Any) -> bytes:
    try:
        return bytes.fromhex(written)
    except (TypeError, ValueError):
        _refuse(name, "be hexadecimal digits", written)


INTEGER: Final[Codec[int]] = _typed(int, "be an integer")
BOOLEAN: Final[Codec[bool]] = _typed(bool, "be true or false")
TEXT: Final[Codec[str]] = _typed(str, "be a text")
NUMBER: Final[Codec[float]] = Codec(lambda v: float(v) if math.isfinite(v) else str(float(v)), _read_number)
"""A float; an infinite one as ``"inf"`` or ``"-inf"``, which JSON does not have."""
RATIONAL: Final[Codec[Fraction]] = Codec(lambda v: f"{v.numerator}/{v.denominator}", _read_rational)
BYTES: Final[Codec[bytes]] = Codec(lambda value: value.hex(), _read_bytes)


def optional(codec: Codec[T]) -> Codec[T | None]:
    """Return the codec of a value that may be missing, which JSON's null stands for."""
    return Codec(
        lambda value: None if value is None else codec.encode(value),
        lambda name, written: None if written is None else codec.decode(name, written),
    )


def sequence(codec: Codec[T]) -> Codec[tuple[T, ...]]:
    """Return the codec of a tuple of values of one kind."""

    def decode(name: str, written: Any) -> tuple[T, ...]:
        if not isinstance(written, list | tuple):
            _refuse(name, "be a list", written)
        return tuple(codec.decode(name, item) for item in written)

    return Codec(lambda values: [codec.encode(value) for value in values], decode)


class Names(Codec[T]):
    """The codec of one of several values by name: members of an enumeration, classes.

    Parameters
    ----------
    what : str
        What is named, for messages.
    names : mapping of str to value
        By wire name; each value once.

    Examples
    --------
    >>> answer = Names("an answer", {"yes": True, "no": False})
    >>> answer.encode(True), answer.decode("given", "no")
    ('yes', False)
    """

    __slots__ = ()

    def __init__(self, what: str, names: Mapping[str, T]) -> None:
        by_value = {value: name for name, value in names.items()}
        if len(by_value) != len(names):
            raise ValueError(f"each of {what} needs one wire name")

        def decode(name: str, written: Any) -> T:
            rule, remedy = f"name {what} that is known here", "install a newer sfumato"
            if not isinstance(written, str):
                _refuse(name, rule, written, remedy)
            if written not in names:
                refuse(name, rule, written[:40], remedy)
            return names[written]

        super().__init__(by_value.__getitem__, decode)


@dataclass(frozen=True, slots=True)
class Field:
    """A field whose wire name is not the attribute's.

    Parameters
    ----------
    attribute : str
        What it is called in Python: of the object, and of its constructor.
    codec : Codec
        How its value is written.
    """

    attribute: str
    codec: Codec[Any]


class Record(Codec[T]):
    """The codec of one class, field by field: an object of exactly these wire names.

    Parameters
    ----------
    what : str
        What it is, with an article, for messages.
    kind : callable
        The constructor, which takes the attributes by keyword.
    fields : mapping of str to Codec or Field
        By wire name; a codec alone is of the attribute of the same name.
    defaults : mapping of str to value, optional
        By wire name, of fields that are left out where they have this value: what is written without a field
        that came later is read as it was meant.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> later = Record("a point", SimpleNamespace, {"x": INTEGER, "label": TEXT}, {"label": ""})
    >>> later.encode(SimpleNamespace(x=3, label="")), later.decode("given", {"x": 3})
    ({'x': 3}, namespace(x=3, label=''))
    """

    __slots__ = ()

    encode: Callable[[T], dict[str, Any]]

    def __init__(
        self,
        what: str,
        kind: Callable[..., T],
        fields: Mapping[str, Codec[Any] | Field],
        defaults: Mapping[str, object] | None = None,
    ) -> None:
        table = {
            wire: part if isinstance(part, Field) else Field(wire, part) for wire, part in fields.items()
        }
        omitted = dict(defaults or {})
        needed = table.keys() - omitted.keys()

        def encode(value: T) -> dict[str, Any]:
            written = {
                wire: part.codec.encode(getattr(value, part.attribute)) for wire, part in table.items()
            }
            for wire, default in omitted.items():
                if getattr(value, table[wire].attribute) == default:
                    del written[wire]
            return written

        def decode(name: str, written: Any) -> T:
            if not isinstance(written, dict) or not needed <= written.keys() <= table.keys():
                _refuse(name, f"be {what} with {', '.join(table)}", written)
            values = {
                p.attribute: p.codec.decode(wire, written[wire])
                for wire, p in table.items()
                if wire in written
            }
            left_out = {table[wire].attribute: omitted[wire] for wire in omitted if wire not in written}
            return kind(**values, **left_out)

        super().__init__(encode, decode)
