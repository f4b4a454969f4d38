"""Cells of columns as documents describe them: objects of TOML and JSON, and dictionaries of variables."""

from __future__ import annotations

import csv
import datetime as dt
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.synthetic.domain.attributes import Attribute, Categorical, Ordered

__all__ = ["described_attribute", "listed_attributes", "read_dictionary"]

_KEYS: Final = frozenset({"values", "other", "missing", "integers", "edges", "lower", "upper", "bins"})
_REMEDY: Final = "write values = [...], integers = [0, 9], edges = [...], or lower, upper and bins"
_WHOLE: Final = re.compile("0|-?[1-9][0-9]{0,17}")
_TRUTH: Final = {"true": True, "false": False}
_YES: Final = frozenset({"true", "yes", "1"})
_NO: Final = frozenset({"", "false", "no", "0"})
_FILE: Final = "be a CSV or JSON file of variables: name, value, label, lower, upper"


def read_dictionary(path: Path, texts: Sequence[str] = ()) -> dict[str, Attribute]:
    """Return the cells of each variable of a dictionary, in its order; see `TableDomain.from_dictionary`.

    Parameters
    ----------
    path : Path
    texts : sequence of str
        Variables of a CSV file whose values are texts.

    Returns
    -------
    dict of str to Categorical or Ordered

    Raises
    ------
    ParameterError
        If it cannot be read so.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        given = (
            json.loads(text) if path.suffix.lower() == ".json" else list(csv.DictReader(text.splitlines()))
        )
    except (OSError, ValueError, RecursionError, csv.Error):
        _check.refuse("path", _FILE, str(path), "check the file")
    rows = given.get("variables") if isinstance(given, dict) else given
    if not isinstance(rows, list) or not all(isinstance(row, dict) and row.get("name") for row in rows):
        _check.refuse("path", _FILE, str(path), "give each row a name")
    read: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        read.setdefault(str(row["name"]), []).append(_without_blanks(row))
    for name in texts:
        if name not in read:
            _check.refuse("texts", f"be among {list(read)}", name, "name variables of the dictionary")
    written = path.suffix.lower() != ".json"
    return {name: _variable(name, each, typed=written and name not in texts) for name, each in read.items()}


def _without_blanks(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the fields of a row that say something, without the blanks around them."""
    known = (
        (str(key).strip(), value.strip() if isinstance(value, str) else value) for key, value in row.items()
    )
    return {key: value for key, value in known if value is not None and value != ""}


def _variable(name: str, rows: Sequence[Mapping[str, Any]], *, typed: bool) -> Attribute:
    """Return the cells that the rows of one variable describe."""
    values: list[Any] = []
    said: dict[str, Any] = {}
    for row in rows:
        listed = row.get("values", [row["value"]] if "value" in row else [])
        if not isinstance(listed, list):
            _check.refuse_type(name, "have a list as values", listed, "write a value, or a list of them")
        values += [each.get("value") if isinstance(each, dict) else each for each in listed]
        if not listed and "label" in row and "lower" not in row:
            values.append(None)
        for key in ("lower", "upper", "bins"):
            if key in row and said.setdefault(key, row[key]) != row[key]:
                _check.refuse_state(name, f"have one {key}", "it has several", "write it once")
    missing = None in values or any(_flag(name, row.get("missing", "")) for row in rows)
    other = any(_flag(name, row.get("other", "")) for row in rows)
    values = [value for value in values if value is not None]
    if bool(values) == bool(said):
        found = "it has both" if values else "it has neither"
        _check.refuse_state(name, "have values, or lower and upper", found, "write one of them")
    if values:
        return Categorical(_typed(values) if typed else values, missing=missing, other=other)
    if other or not {"lower", "upper"} <= said.keys():
        _check.refuse_state(name, "have lower and upper, and no other", "it has not", "complete its row")
    lower, upper = (_number(name, said[key]) for key in ("lower", "upper"))
    if "bins" in said:
        return Ordered(lower, upper, bins=_whole(name, said["bins"]), missing=missing)
    return Ordered.integers(_whole(name, said["lower"]), _whole(name, said["upper"]), missing=missing)


def _typed(values: Sequence[str]) -> list[Any]:
    """Return texts as whole numbers or truth values, where all of them are."""
    if all(_WHOLE.fullmatch(value) for value in values):
        return [int(value) for value in values]
    if all(value.lower() in _TRUTH for value in values):
        return [_TRUTH[value.lower()] for value in values]
    return list(values)


def _flag(name: str, written: Any) -> bool:
    text = str(written).lower()
    if text not in _YES | _NO:
        _check.refuse(name, "say true or false of missing and other", written, "leave it out for false")
    return text in _YES


def _number(name: str, written: Any) -> float:
    try:
        return _check.finite(name, float(written))
    except (TypeError, ValueError, OverflowError):
        _check.refuse_type(name, "have numbers as lower and upper", written, "write 0 and 99, say")


def _whole(name: str, written: Any) -> int:
    number = _number(name, written)
    if number != int(number):
        _check.refuse(name, "have bins, or whole numbers as lower and upper", written, "write bins too")
    return int(number)


def listed_attributes(columns: object) -> dict[str, Attribute]:
    """Return the cells of columns that a document lists, each with its name.

    Parameters
    ----------
    columns : list of dict

    Returns
    -------
    dict of str to Categorical or Ordered

    Raises
    ------
    ParameterError
        If it is no such list, or names are not different.
    """
    if not isinstance(columns, list) or not all(isinstance(each, dict) for each in columns):
        _check.refuse_type("columns", "be a list of objects", columns, "pass what to_json returned")
    names = [each.pop("name", None) for each in columns]
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        found = "some lack one, or two have the same"
        _check.refuse_state("columns", "have different names", found, "pass what to_json returned")
    return {name: described_attribute(name, each) for name, each in zip(names, columns, strict=True)}


def described_attribute(name: str, given: object) -> Attribute:
    """Return the cells of a column that an object of a document describes.

    Parameters
    ----------
    name : str
        The column's, for messages.
    given : object

    Returns
    -------
    Categorical or Ordered

    Raises
    ------
    ParameterError
        If it describes none.
    """
    if not isinstance(given, dict) or not given.keys() <= _KEYS:
        _check.refuse_type(name, f"be an object of {sorted(_KEYS)}", given, _REMEDY)
    said = dict(given)
    try:
        if "values" in said:
            return Categorical(**said)
        if "integers" in said:
            lower, upper = said.pop("integers")
            return Ordered.integers(lower, upper, **said)
        if "edges" in said:
            said["edges"] = [dt.date.fromisoformat(e) if isinstance(e, str) else e for e in said["edges"]]
        return Ordered(**said)
    except ParameterError:
        raise
    except (TypeError, ValueError):
        _check.refuse(name, "describe cells", json.dumps(given, default=str), _REMEDY)
