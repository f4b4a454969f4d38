"""How losses are serialised: each class states its name and its parameters' names beside itself.

``serialized_as`` above a class is all that it needs; the class then writes and reads itself, alone or as a
part of another loss. To add a loss, write its module with that line, and name its class in
`sfumato.privacy.catalog`, which reading imports, and in ``sfumato/privacy/__init__.py``.

>>> from sfumato.privacy import Gaussian
>>> LOSS.encode(Gaussian(1.5))
{'kind': 'gaussian', 'noise_multiplier': 1.5, 'neighboring': 'add-remove'}

The names on the left of a table are what users have stored: they are never changed. A parameter of the
constructor may be renamed if the table says so (`sfumato._wire.Field`). The document around a loss says
format ``sfumato.loss`` and version 1; a loss that it names must account to the same or a smaller number in
every later version. Reading refuses names that it does not know, missing and additional parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Protocol, TypeVar

from sfumato._check import refuse, refuse_state, refuse_type
from sfumato._wire import Codec, Field, Format, canonical, parse, sequence

__all__ = ["LOSS", "LOSSES", "from_text", "parameter_names", "serialized_as", "to_text"]

_FORMAT: Final = Format("sfumato.loss", 1)
_MAX_DEPTH: Final = 130
_REMEDY: Final = "pass text written by to_json, in this or an earlier version of sfumato"


class _Loss(Protocol):
    """A loss, as far as its parameters go."""

    def parameters(self) -> Mapping[str, object]:
        """Return what the constructor takes, by keyword."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """How one class of losses is written."""

    name: str
    kind: Callable[..., Any]
    fields: Mapping[str, Field]


_BY_NAME: Final[dict[str, _Entry]] = {}
_BY_CLASS: Final[dict[type, _Entry]] = {}
_Class = TypeVar("_Class", bound=type)


def serialized_as(name: str, **codecs: Codec[Any] | Field) -> Callable[[_Class], _Class]:
    """Decorate a class of losses with its name and its parameters' names in serialised losses.

    Parameters
    ----------
    name : str
        Such as ``gaussian``; the field's term, in lower case with hyphens, never changed.
    **codecs : Codec or Field
        The codec of each parameter that the constructor takes, by the name that is written. Where the
        constructor calls it by another name, a `Field` says which.
    """
    table = {wire: part if isinstance(part, Field) else Field(wire, part) for wire, part in codecs.items()}

    def register(kind: _Class) -> _Class:
        if name in _BY_NAME or "kind" in table:
            raise ValueError(f"{name} needs a name of its own, and parameters not called kind")
        if {part.attribute for part in table.values()} != {*parameter_names(kind)}:
            raise ValueError(f"{name} must be serialised with the parameters that its constructor takes")
        _BY_NAME[name] = _BY_CLASS[kind] = _Entry(name, kind, table)
        return kind

    return register


def parameter_names(kind: type) -> dict[str, str]:
    """Return what a loss's constructor takes, each with the name of the field that stores it."""
    return {field.name.lstrip("_"): field.name for field in fields(kind) if field.compare}


def _encode(loss: _Loss) -> dict[str, object]:
    entry = _BY_CLASS[type(loss)]
    values = loss.parameters()
    written = {wire: part.codec.encode(values[part.attribute]) for wire, part in entry.fields.items()}
    return {"kind": entry.name, **written}


def _decode(name: str, written: Any) -> Any:
    if not isinstance(written, dict) or not isinstance(written.get("kind"), str):
        refuse_type(name, "describe each loss as an object with a kind", written, _REMEDY)
    parts = {key: value for key, value in written.items() if key != "kind"}
    entry = _BY_NAME.get(written["kind"])
    if entry is None:
        refuse(
            name, "be of a kind of loss that is known here", written["kind"][:40], "install a newer sfumato"
        )
    if parts.keys() != entry.fields.keys():
        expected, found = ", ".join(sorted(entry.fields)), ", ".join(sorted(parts))[:200]
        refuse_state(name, f"give {entry.name} exactly {expected}", f"it gives {found}", _REMEDY)
    values = {part.attribute: part.codec.decode(wire, parts[wire]) for wire, part in entry.fields.items()}
    return entry.kind(**values)


LOSS: Final[Codec[Any]] = Codec(_encode, _decode)
"""A loss, as an object with its kind and its parameters."""
LOSSES: Final[Codec[tuple[Any, ...]]] = sequence(LOSS)
"""Several losses."""


def to_text(loss: _Loss) -> str:
    """Return the one JSON text of a loss."""
    return canonical(_FORMAT.wrap({"loss": LOSS.encode(loss)}))


def from_text(text: str) -> Any:
    """Return the loss of a text; of kinds that were imported only, see `sfumato.privacy.catalog`."""
    _, document = _FORMAT.unwrap("text", parse("text", text))
    if document.keys() != {"loss"}:
        found = ", ".join(sorted(document))[:200]
        refuse_state("text", "hold format, version and loss", f"it holds {found}", _REMEDY)
    if not _is_shallow(document["loss"]):
        refuse_state("text", f"nest objects and lists at most {_MAX_DEPTH} deep", "it goes deeper", _REMEDY)
    try:
        return LOSS.decode("text", document["loss"])
    except OverflowError:
        refuse_state("text", "hold numbers that fit a float", "one of them is larger", _REMEDY)


def _is_shallow(document: object) -> bool:
    level = [document]
    for _ in range(_MAX_DEPTH):
        level = [
            part
            for item in level
            for part in (item.values() if isinstance(item, dict) else item if isinstance(item, list) else ())
        ]
        if not level:
            return True
    return False
