"""Tables of a TOML file whose errors name the file, the key, the rule, the value and a remedy."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, final

from sfumato import _check
from sfumato.errors import ParameterError, SfumatoError

__all__ = [
    "Table", "flag", "from_text", "number_above_zero", "port", "positive_integer", "rate", "read_toml",
    "refuse_unknown", "several", "text", "under",
]  # fmt: skip

_LAST_PORT: Final = 65_535
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


@final
@dataclass(frozen=True, slots=True)
class Table:
    """One table of a file; a key that is not known is refused with the nearest one.

    Parameters
    ----------
    file : Path
    path : str
        Of the table in the file, such as ``collections.week-7``; empty for the file itself.
    values : mapping
    known : sequence of str
        The keys that it may have.

    Examples
    --------
    >>> Table(Path("collector.toml"), "", {"prot": 1}, ("port", "host"))
    Traceback (most recent call last):
    ...
    sfumato.errors.ParameterError: collector.toml must set what is known here, got 'prot'; did you ...
    """

    file: Path
    path: str
    values: Mapping[str, Any]
    known: Sequence[str]

    def __post_init__(self) -> None:
        given: object = self.values
        here = self.where()
        if not isinstance(given, dict):
            _check.refuse_type(here, "be a table", given, f"it may have {', '.join(self.known)}")
        for name in given:
            if name not in self.known:
                refuse_unknown(here, name, self.known)

    def where(self, name: str = "") -> str:
        """Return what errors call a key: the file, and the path to it."""
        shown = name if _BARE.fullmatch(name) or not name else repr(name)
        path = ".".join(part for part in (self.path, shown) if part)
        return f"{self.file}: {path}" if path else str(self.file)

    def get(self, name: str, read: Callable[[str, object], Any], default: Any = None) -> Any:
        """Return the checked value of a key, or the default where it is not set."""
        return read(self.where(name), self.values[name]) if name in self.values else default

    def required(self, name: str, read: Callable[[str, object], Any], remedy: str) -> Any:
        """Return the checked value of a key that must be set."""
        if name not in self.values:
            _check.refuse_state(self.where(name), "be set", "it is not", remedy)
        return read(self.where(name), self.values[name])

    def place(self, name: str) -> Path | None:
        """Return the path that a key states: relative ones are from the file's folder."""
        given = self.get(name, text)
        return None if given is None else self.file.parent / given

    def table(self, name: str, known: Sequence[str]) -> Table:
        """Return a table inside of this one."""
        return Table(self.file, self.where(name).partition(": ")[2], self.values[name], known)


def read_toml(file: Path, known: Sequence[str]) -> Table:
    """Return the whole of a file.

    Raises
    ------
    ParameterError
        If it cannot be read, is no TOML, or sets what is not known.
    """
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        why = (error.strerror or "a failure").lower()
        _check.refuse_state(str(file), "be a file that can be read", f"it is not: {why}", "check the path")
    except (ValueError, RecursionError) as error:
        why = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "it is not"
        _check.refuse_state(str(file), "be a file of TOML", why, "correct it")
    return Table(file, "", values, known)


def refuse_unknown(where: str, name: str, known: Sequence[str]) -> NoReturn:
    """Refuse a name, and offer the nearest one that is known."""
    near = difflib.get_close_matches(name, known, 1)
    remedy = f"did you mean {near[0]!r}?" if near else f"it may be {', '.join(known)}"
    _check.refuse(where, "set what is known here", name, remedy)


@contextmanager
def under(where: str) -> Iterator[None]:
    """Name the place in a file in errors about what that place states."""
    try:
        yield
    except SfumatoError as error:
        raise ParameterError(f"{where}: {error}") from error


def from_text(value: str) -> object:
    """Return what a text in the environment states, as TOML writes it; other text as it is.

    >>> from_text("8420"), from_text("true"), from_text("2.5"), from_text("no such")
    (8420, True, 2.5, 'no such')
    """
    try:
        found = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):
        return value
    return found["value"] if found.keys() == {"value"} else value


def text(where: str, value: object) -> str:
    """Return a text that is not empty."""
    if not isinstance(value, str):
        _check.refuse_type(where, "be a text", value, 'write it in quotes: "..."')
    if not value:
        _check.refuse(where, "be a text that is not empty", value, "leave it out, or fill it in")
    return value


def flag(where: str, value: object) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        _check.refuse(where, "be true or false", value, "write it without quotes")
    return value


def positive_integer(where: str, value: object) -> int:
    """Return an integer of at least 1."""
    return _check.integer(where, value, minimum=1, remedy="write a whole number without quotes")


def port(where: str, value: object) -> int:
    """Return the number of a port; 0 is any that is free."""
    if _check.integer(where, value, remedy="write 0 for any that is free") > _LAST_PORT:
        _check.refuse(where, f"be at most {_LAST_PORT}", value, "write 0 for any that is free")
    return int(value)  # type: ignore[call-overload, no-any-return]


def number_above_zero(where: str, value: object) -> float:
    """Return a positive and finite number."""
    return _check.positive(where, value, "write a number without quotes")


def rate(where: str, value: object) -> float:
    """Return a positive number, which may be infinite."""
    if value == math.inf:
        return math.inf
    return _check.positive(where, value, "write a number without quotes, or leave it out for no limit")


def several(table: Table, name: str, known: Sequence[str]) -> list[Table]:
    """Return the tables of an array of tables, such as ``[[collections.week-7.keys]]``."""
    given = table.values.get(name, [])
    where = table.where(name)
    if not isinstance(given, list):
        _check.refuse_type(where, "be an array of tables", given, f"begin each with [[{where}]]")
    inside = where.partition(": ")[2]
    return [Table(table.file, f"{inside}[{at}]", one, known) for at, one in enumerate(given)]
