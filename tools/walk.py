"""Follow one call through the house: which files and functions it enters, and where it climbs.

Run ``python tools/walk.py sql`` (or ``training``, ``local``) at the project's root. It makes one query, one
training step or one local report and prints the folders in the order in which they are entered first, with
the files of each, the numbers of files and functions, and the climbs: the calls against the direction of
imports, by way of what was handed down.
``docs/architecture.md`` shows the same walks as pictures.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Print a walk."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    return int(importlib.import_module("tools.walks.command").main(argv))


if __name__ == "__main__":
    sys.exit(main())
