"""Lazy faces (PEP 562): a package names its public parts, and each is imported on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["attach"]


def attach(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the ``__getattr__`` and ``__dir__`` of a package that exports lazily.

    A public name must differ from the name of every module in its package: importing such a module would
    put the module in the name's place.

    Parameters
    ----------
    package : str
        The package's ``__name__``.
    homes : mapping of str to str
        Public name to the full name of the module that defines it; a name mapped to ``""`` is a
        submodule of the package.

    Returns
    -------
    tuple
        ``(__getattr__, __dir__)``.
    """

    def lookup(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not homes[name]:
            return importlib.import_module(f"{package}.{name}")
        value = getattr(importlib.import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return lookup, lambda: sorted(homes)
