"""Protocols as JSON: their name and their parameters, which make the same protocol again."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from inspect import isabstract
from typing import Any, Final

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.local.device.domain import Domain
from sfumato.local.protocol import ReportProtocol

__all__ = ["protocol_from_told", "protocol_kind", "told_protocol"]

_FACES: Final = ("sfumato.local", "sfumato.local.shuffle")
_DOMAIN: Final = "domain"


def told_protocol(protocol: ReportProtocol[Any, Any]) -> dict[str, Any] | None:
    """Return a protocol as JSON, or None for one with a parameter that JSON does not have."""
    name, parameters = type(protocol).__name__, {}
    if protocol_kind(name) is not type(protocol):
        return None
    for field in dataclasses.fields(protocol):  # type: ignore[arg-type]
        if field.init:
            value = getattr(protocol, field.name)
            if isinstance(value, Domain):
                value = {_DOMAIN: value.specification()}
                if value[_DOMAIN].keys() == {"digest"}:
                    return None
            elif isinstance(value, tuple) and all(isinstance(part, int | float | str) for part in value):
                value = list(value)
            elif not isinstance(value, int | float | str | None):
                return None
            parameters[field.name] = value
    return {"name": name, "parameters": parameters}


def protocol_from_told(told: object) -> ReportProtocol[Any, Any]:
    """Return the protocol that `told_protocol` told.

    Raises
    ------
    ParameterError
        If it names no known protocol, or its parameters break a rule.
    """
    kind = protocol_kind(told.get("name")) if isinstance(told, Mapping) else None
    parameters = told.get("parameters") if isinstance(told, Mapping) else None
    if kind is None or not isinstance(parameters, dict):
        raise ParameterError(
            "protocol must be told by the name of a known one and its parameters, got something else; "
            "pass protocol="
        )
    values = {name: _value(value) for name, value in parameters.items()}
    try:
        made: ReportProtocol[Any, Any] = kind(**values)
    except TypeError:
        names = ", ".join(field.name for field in dataclasses.fields(kind) if field.init)  # type: ignore[arg-type]
        _check.refuse("protocol", f"have the parameters {names}", sorted(values))
    return made


def protocol_kind(name: object) -> type[ReportProtocol[Any, Any]] | None:
    """Return the protocol of a name in `sfumato.local` or `sfumato.local.shuffle`, or None."""
    for face in map(importlib.import_module, _FACES):
        kind = getattr(face, name) if isinstance(name, str) and name in face.__all__ else None
        if isinstance(kind, type) and issubclass(kind, ReportProtocol) and not isabstract(kind):
            return kind
    return None


def _value(value: object) -> object:
    if isinstance(value, Mapping):
        domain = value.get(_DOMAIN)
        return Domain.from_specification(domain if isinstance(domain, Mapping) else {})
    return tuple(value) if isinstance(value, list) else value
