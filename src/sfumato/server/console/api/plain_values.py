"""Values as JSON has them: every number that is none, and every time, has one spelling.

>>> plain({"n": float("inf"), "day": date(2026, 1, 2), "rows": (1, None)})
{'n': 'Infinity', 'day': '2026-01-02', 'rows': [1, None]}
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, time
from decimal import Decimal
from enum import Enum
from typing import Any, Final

import pyarrow as pa

from sfumato.queries.release.display import plain_rows

__all__ = ["json_bytes", "plain", "rows_of"]


def plain(value: object) -> Any:
    """Return a value as one of JSON.

    Numbers that are none are ``"NaN"``, ``"Infinity"`` or ``"-Infinity"``; decimals are texts, so that no
    digit is lost; dates and times are ISO 8601; bytes are base64.

    Parameters
    ----------
    value : object
    """
    if value is None or type(value) in (bool, int, str):
        return value
    found = next((write for kind, write in _WRITERS if isinstance(value, kind)), None)
    if found is not None:
        return found(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    return str(value)


def _float(value: float) -> float | str:
    return value if math.isfinite(value) else _NAMES[str(value)]


def _mapping(value: Mapping[Any, object]) -> dict[str, Any]:
    return {str(name): plain(each) for name, each in value.items()}


def _list(value: Iterable[object]) -> list[Any]:
    return [plain(each) for each in value]


_NAMES: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_WRITERS: Final[tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...]] = (
    (Enum, lambda value: plain(value.value)),
    (float, _float),
    ((date, time), lambda value: value.isoformat()),
    (bytes, lambda value: base64.b64encode(value).decode("ascii")),
    (Mapping, _mapping),
    ((tuple, list), _list),
    (Decimal, lambda value: format(value, "f")),
)
"""How values are written that are none of JSON's own."""


def json_bytes(value: object) -> bytes:
    """Return a value as JSON in UTF-8."""
    return json.dumps(plain(value), allow_nan=False, ensure_ascii=False).encode("utf-8", "replace")


def rows_of(table: pa.Table) -> dict[str, Any]:
    """Return a table as names and types of columns, and rows.

    Parameters
    ----------
    table : pyarrow.Table
    """
    columns = [{"name": each.name, "type": str(each.type)} for each in table.schema]
    return {"columns": columns, "rows": list(map(list, plain_rows(table)))}
