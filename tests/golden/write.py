"""Writes the golden files: every kind of value that sfumato stores or sends, in its frozen format.

Run ``python -m tests.golden.write`` at the project's root after a kind was added. A file that is there is not
written again: its bytes are what users have, and the tests of each room read them back. Only a table in JSON
gets the entries that it lacks; those that it has stay as they are. Each room has a module ``making.py`` in
its folder here, whose function ``files()`` returns the bytes of each file by name.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path

HERE = Path(__file__).parent


def rooms() -> list[str]:
    """Return the rooms that have golden files."""
    return sorted(making.parent.name for making in HERE.glob("*/making.py"))


def main() -> None:
    """Write what is missing."""
    for room in rooms():
        made: dict[str, bytes] = importlib.import_module(f"tests.golden.{room}.making").files()
        for name, content in sorted(made.items()):
            path = HERE / room / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(completed(path.read_bytes(), content) if path.exists() else content)


def completed(there: bytes, made: bytes) -> bytes:
    """Return a file that is there, with the entries that it lacks if it is a table in lines of JSON."""
    try:
        known, whole = json.loads(there), json.loads(made)
    except ValueError:  # not JSON, or not text
        return there
    if not isinstance(known, dict) or not isinstance(whole, dict) or known.keys() >= whole.keys():
        return there
    if there != in_lines(known):
        return there
    return in_lines({**{name: known.get(name, entry) for name, entry in whole.items()}, **known})


def in_lines(document: object) -> bytes:
    """Write a document in lines that a diff shows."""
    return (json.dumps(document, indent=1) + "\n").encode()


if __name__ == "__main__":
    main()
