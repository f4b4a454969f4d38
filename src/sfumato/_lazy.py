"""Lazy faces (PEP 562): a package names its public parts, and each is imported on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["attach"]


def attach(
    package: str, homes: Mapping[str, str], *, extras: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
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
    extras : mapping of str to str, optional
        The import names of optional libraries that the parts may need, to the extras that install them.

    Returns
    -------
    tuple
        ``(__getattr__, __dir__)``. The first raises `MissingExtra` for a part whose library is absent.
    """

    def load(module: str, name: str) -> Any:
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as missing:
            extra = (extras or {}).get((missing.name or "").partition(".")[0])
            if extra is None:
                raise
            message = f"{name} needs {missing.name}; pip install 'sfumato[{extra}]'"
            raise importlib.import_module("sfumato.errors").MissingExtra(message) from missing

    def lookup(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not homes[name]:
            return load(f"{package}.{name}", name)
        value = getattr(load(homes[name], name), name)
        setattr(sys.modules[package], name, value)
        return value

    return lookup, lambda: sorted(homes)
