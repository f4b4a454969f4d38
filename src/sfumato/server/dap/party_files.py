"""The files of parties: secret ones, which their owner alone may read, and public ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from sfumato import _check
from sfumato._durable import new_file, private_content
from sfumato._wire import parse
from sfumato.errors import SourceError

__all__ = ["read_public", "read_secret", "write_secret"]

_LONGEST: Final = 1 << 20


def write_secret(path: Path, document: object) -> None:
    """Write a document to a new file that its owner alone may read.

    Raises
    ------
    ParameterError
        If the file exists already, or cannot be made.
    """
    try:
        new_file(path, (json.dumps(document, indent=2) + "\n").encode())
    except OSError as error:
        why = (error.strerror or "a failure").lower()
        _check.refuse("the party's file", f"be a new one ({why})", str(path), "name another file")


def read_secret(path: Path) -> Any:
    """Return the document of a file that nobody but its owner may read.

    Raises
    ------
    SourceError
        If the file cannot be read.
    ParameterError
        If others may read it, or it is no JSON.
    """
    try:
        content = private_content(path, _LONGEST)
    except OSError as error:
        raise SourceError(f"the party's file must be readable, got {str(path)!r}; check it") from error
    if content is None:
        rule = "be one that its owner alone can read"
        _check.refuse("the party's file", rule, str(path), "chmod 600 it")
    return parse("party", content)


def read_public(path: Path, name: str) -> Any:
    """Return the document of a file that is public, such as a ``"task"``.

    Raises
    ------
    SourceError
        If the file cannot be read.
    ParameterError
        If it is no JSON.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_LONGEST)
    except OSError as error:
        raise SourceError(f"the {name}'s file must be readable, got {str(path)!r}; check it") from error
    return parse(name, content)
