"""Checks of what a request says against its declared schema: the few words of JSON Schema that are used here.

>>> check_value("body", {"n": 0}, {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}})
Traceback (most recent call last):
sfumato.errors.ParameterError: body.n must be at least 1, got 0; the OpenAPI document says what it is
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sfumato import _check
from sfumato.server.console.api.operation import Schema

__all__ = ["check_value", "read_query"]

_REMEDY: Final = "the OpenAPI document says what it is"
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}
_DIGITS: Final = 18


def check_value(name: str, value: object, schema: Schema) -> None:
    """Refuse what is not of a schema.

    Parameters
    ----------
    name : str
        What the value is called.
    value : object
        As JSON has it.
    schema : Schema
        Of ``type``, ``properties``, ``required``, ``additionalProperties``, ``items``, ``minimum`` and
        ``enum``.

    Raises
    ------
    ParameterError
        Naming the part.
    """
    kinds = schema.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    if kinds and not any(_is(value, kind) for kind in kinds):
        _check.refuse_type(name, f"be of type {' or '.join(kinds)}", value, _REMEDY)
    if isinstance(value, dict):
        _check_members(name, value, schema)
    if isinstance(value, list) and "items" in schema:
        for index, each in enumerate(value):
            check_value(f"{name}[{index}]", each, schema["items"])
    if "enum" in schema and value not in schema["enum"]:
        _check.refuse_state(name, f"be one of {', '.join(schema['enum'])}", "it is another", _REMEDY)
    if type(value) in (int, float) and "minimum" in schema and not _number(value) >= schema["minimum"]:
        _check.refuse(name, f"be at least {schema['minimum']}", value, _REMEDY)


def _number(value: Any) -> float | int:
    return value if isinstance(value, int | float) else 0


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _check_members(name: str, value: Mapping[str, object], schema: Schema) -> None:
    known = schema.get("properties", {})
    for each in schema.get("required", ()):
        if each not in value:
            _check.refuse_state(f"{name}.{each}", "be given", "it is missing", _REMEDY)
    more = schema.get("additionalProperties", True)
    for each, member in value.items():
        if each in known:
            check_value(f"{name}.{each}", member, known[each])
        elif more is False:
            rule = f"have no member but {', '.join(known)}" if known else "have no member"
            _check.refuse_state(name, rule, "it has another", _REMEDY)
        elif isinstance(more, Mapping):
            check_value(f"{name}'s member", member, more)


def read_query(given: Sequence[tuple[str, str]], declared: Mapping[str, Schema]) -> dict[str, Any]:
    """Return the parameters after the question mark, each of its declared type.

    Parameters
    ----------
    given : sequence of pairs of str
    declared : mapping of str to Schema

    Raises
    ------
    ParameterError
        If one is not declared, comes twice, or is not of its type.
    """
    found: dict[str, Any] = {}
    for name, text in given:
        if name not in declared:
            rule = f"be of {', '.join(declared)}" if declared else "be none"
            _check.refuse_state("the parameters", rule, "there is another", _REMEDY)
        if name in found:
            _check.refuse_state(name, "be given once", "it comes twice", _REMEDY)
        found[name] = _read(name, text, declared[name])
        check_value(name, found[name], declared[name])
    return found


def _read(name: str, text: str, schema: Schema) -> object:
    if schema["type"] == "integer":
        digits = text.lstrip("0") or text[:1]
        if not (text.isascii() and text.isdigit() and len(digits) <= _DIGITS):
            _check.refuse(name, f"be a whole number of at most {_DIGITS} digits", text[:40], _REMEDY)
        return int(digits)
    return text
