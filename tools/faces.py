"""Import every package of an installed sfumato, and all that its face shows.

Run ``python tools/faces.py`` in the environment that is to be tried; names of packages behind it try these
alone. What needs a library that is absent must say which extra installs it; anything else that fails, fails
here.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator, Sequence

import sfumato
from sfumato.errors import MissingExtra

__all__ = ["main", "packages", "shown"]


def packages() -> Iterator[str]:
    """Yield the names of the distribution's packages, parents first."""
    yield sfumato.__name__
    for found in pkgutil.walk_packages(sfumato.__path__, f"{sfumato.__name__}.", onerror=lambda name: None):
        if found.ispkg:
            yield found.name


def shown(name: str) -> tuple[int, list[str]]:
    """Return how many names a package's face shows, and what those say that need an absent library."""
    try:
        package = importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] == sfumato.__name__:
            raise
        return 0, [f"{name} needs {missing.name}"]  # a part of a room, whose face says which extra
    names, absent = getattr(package, "__all__", ()), []
    for public in names:
        try:
            getattr(package, public)
        except MissingExtra as missing:
            absent.append(f"{name}.{public}: {missing}")
    return len(names), absent


def main(argv: Sequence[str]) -> int:
    """Print what was tried: the packages that are named, or all."""
    found = [shown(name) for name in argv or packages()]
    for _, absent in found:
        print(*absent, sep="\n", end="\n" if absent else "")
    missing = sum(len(absent) for _, absent in found)
    names = sum(count for count, _ in found)
    print(f"{len(found)} packages, {names} names, {missing} without an absent library")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
