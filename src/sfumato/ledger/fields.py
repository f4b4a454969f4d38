"""A value as the fields of a JSON object, by the record that states them."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from sfumato._wire import Record

__all__ = ["fields_of"]

T = TypeVar("T")


def fields_of(record: Record[T], value: T) -> dict[str, Any]:
    """Return the fields that a record writes for a value."""
    return cast("dict[str, Any]", record.encode(value))
