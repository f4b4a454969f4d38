"""Writes the golden files: every kind of value that sfumato stores or sends, in the bytes of its frozen format.

Run ``python -m tests.golden.write`` at the project's root after a kind was added. A file that is there already is
not written again: its bytes are what users have, and the tests of each room read them back. Each room has a
module ``making.py`` in its folder here, with a function ``files()`` that returns the bytes of each file by name.
"""

from __future__ import annotations

import importlib
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
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)


if __name__ == "__main__":
    main()
