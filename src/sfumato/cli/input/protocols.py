"""Protocols of local privacy as the command line names them: their parameters, domains and values."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from functools import partial
from typing import Any

from sfumato import _check, local
from sfumato.errors import ParameterError
from sfumato.local.base.protocol import ReportProtocol
from sfumato.local.base.specifications import protocol_kind

__all__ = ["domain_of", "parameters", "protocol_of", "value_reader"]


def domain_of(domain: str | None, categories: int | None) -> local.Domain | None:
    """Return the categories that ``--domain`` or ``--range`` names, or None without either."""
    if domain is not None and categories is not None:
        _check.refuse_state("--domain", "come without --range", "both are given", "pass one of them")
    if domain is None and categories is None:
        return None
    return local.Domain(range(categories or 0) if domain is None else domain.split(","))


def parameters(texts: Iterable[str]) -> dict[str, Any]:
    """Return what each ``--parameter NAME=JSON`` says."""
    return dict(_parameter(text) for text in texts)


def protocol_of(name: str, given: dict[str, Any]) -> ReportProtocol[Any, Any]:
    """Make a protocol of those of the given parameters that it has; a delta and clients may be too many."""
    kind = protocol_kind(name)
    if kind is None:
        _check.refuse(
            "protocol", "be the name of a local or a shuffled protocol", name, "look it up in the guide"
        )
    fields = [field for field in dataclasses.fields(kind) if field.init]  # type: ignore[arg-type]
    known = {field.name for field in fields}
    strange = given.keys() - known - {"delta", "clients"}
    missing = {field.name for field in fields if field.default is dataclasses.MISSING} - given.keys()
    if strange or missing:
        rule = f"have the parameters {', '.join(sorted(known))}"
        names = ", ".join(sorted(strange or missing))
        found = f"{names} {'is not one of them' if strange else 'is missing'}"
        _check.refuse_state("protocol", rule, found, "pass each by an option, or by --parameter NAME=JSON")
    made: ReportProtocol[Any, Any] = kind(**{key: value for key, value in given.items() if key in known})
    return made


def value_reader(randomizer: Any) -> Any:
    """Return what makes a value of a text: a category by its text, a number, or a string as it is."""
    domain = getattr(randomizer, "domain", None)
    if domain is None:
        return _number if hasattr(randomizer, "bounds") else str
    if isinstance(domain, local.Bins):
        return _number
    if isinstance(domain.values, range):
        return partial(_number, kind=int, words="whole numbers")
    known = {str(value): value for value in domain.values}
    return lambda text: known.get(text, text)


def _number(text: str, kind: type[float] = float, words: str = "numbers") -> float:
    try:
        return kind(text)
    except ValueError:
        raise ParameterError(
            f"values must be {words} for this protocol, got other text; leave the others out"
        ) from None


def _parameter(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    try:
        read = json.loads(value)
    except ValueError:
        _check.refuse("--parameter", "be NAME=JSON", text, "write --parameter bounds=[18,90]")
    return name, tuple(read) if isinstance(read, list) else read
