"""Names of Opacus's for which sfumato has another way: what an import of one says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sfumato import _check

__all__ = ["elsewhere"]


def elsewhere(module: str, rule: str, found: str, remedies: Mapping[str, str]) -> Callable[[str], Any]:
    """Make the ``__getattr__`` of a module whose names are done otherwise here.

    Parameters
    ----------
    module : str
        Its ``__name__``.
    rule, found : str
        Why the names are not there: what sfumato wants, and what Opacus has.
    remedies : mapping of str to str
        Each of Opacus's names to what to use.

    Returns
    -------
    callable
        Raises `ParameterError` for these names, so that the import says it, and AttributeError for others.
    """

    def lookup(name: str) -> Any:
        if name not in remedies:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        _check.refuse_state(name, rule, found, remedies[name])

    return lookup
