"""Break the package on purpose, a little at a time, and see which tests notice.

Run ``python tools/mutate.py`` at the project's root for a seeded draw over the package, with ``--since
REVISION`` for what changed since a commit, with ``--files FILE...`` for some files, or with ``--kernels 20``
for the C kernels. Each mutant is one small change of one expression: a comparison, a number off by one, a
minimum for a maximum, a rounding the other way, a factor, sign or clamp left out, two arguments swapped, a
condition turned. The tests nearest to it run until one fails; a mutant that they all pass is a hole in the
tests, or means the same as the original. What means the same is listed with its reason in
``tools/equivalents.toml``.

The exit status is 1 if a mutant survives that is not listed, if a listed one dies, or if an entry of the list
is no mutant any more. ``--trace`` runs all tests once and remembers which functions each reaches, which makes
later runs faster.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Try mutants and print what becomes of them; return 1 if one survives that is not listed."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    return int(importlib.import_module("tools.mutation.command").main(argv))


if __name__ == "__main__":
    sys.exit(main())
