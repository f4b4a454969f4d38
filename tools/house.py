"""The measures of the house, taken from the source tree.

Run ``python tools/house.py`` at the project's root. It prints the measures, then every fault, and exits with
1 if there is one. Faults are: a file over 400 lines, a median of 150 or more, a 95th percentile of functions
of 45 lines or more, more than 20 modules in a folder, a circle of imports, an import inside a function that
is not of an optional third-party library, a public name without types or docstring, a face whose ``__all__``
is not what it exports, two modules or two public classes of one name in a room, a folder without tests of its
own, less documentation or more words of our own than ``[tool.house]`` in ``pyproject.toml`` says, and what
numpydoc finds in the docstrings of public names by the checks of ``[tool.numpydoc_validation]``. ``-v`` lists
what the documentation of public names lacks.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the measures and the faults; return 1 if there is a fault."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    return int(importlib.import_module("tools.measures.command").main(argv))


if __name__ == "__main__":
    sys.exit(main())
