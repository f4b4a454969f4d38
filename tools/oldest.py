"""Print pip constraints for the oldest versions that pyproject.toml allows.

Run ``python tools/oldest.py > oldest.txt``, then ``pip install --constraint oldest.txt ".[test]"``: a lower
bound is a promise, and this is how it is tested.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

__all__ = ["main", "oldest"]


def oldest(project: Mapping[str, Any]) -> Iterator[str]:
    """Yield a constraint for each dependency, extras included: the newest patch of its lower bound.

    What is pinned to one version is its own constraint.

    Parameters
    ----------
    project : mapping
        The content of ``pyproject.toml``.
    """
    table = project["project"]
    lines = [
        *table["dependencies"],
        *(line for extra in table["optional-dependencies"].values() for line in extra),
    ]
    for need in map(Requirement, lines):
        bounds = [part.version for part in need.specifier if part.operator == ">="]
        if bounds:
            yield f"{need.name}=={bounds[0]}{'' if '.' in bounds[0] else '.0'}.*"
        elif need.name != table["name"] and not any(part.operator == "==" for part in need.specifier):
            raise ValueError(
                f"{need.name} must have a lower bound in pyproject.toml; add one that was tested"
            )


def main() -> int:
    """Print one constraint a line."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    print("\n".join(oldest(project)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
