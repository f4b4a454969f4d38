"""Options that several commands have, stated once: a command takes them beside its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["options_of", "put_before"]


def options_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a function by name, their annotations evaluated."""
    return inspect.signature(function, eval_str=True).parameters


def put_before(
    run: Callable[..., None],
    shared: Mapping[str, inspect.Parameter],
    command: Callable[..., None],
    *,
    without: tuple[str, ...],
) -> Callable[..., None]:
    """Give a wrapper of a command the shared parameters before the command's own, and return it.

    Parameters
    ----------
    run : callable
        The wrapper, which takes all of them by keyword.
    shared : mapping
        As `options_of` returned them.
    command : callable
    without : tuple of str
        Parameters of the command that the wrapper passes by itself.
    """
    own = options_of(command)
    merged = [*shared.values(), *(own[name] for name in own if name not in without)]
    merged.sort(key=lambda parameter: parameter.kind)
    run.__signature__ = inspect.Signature(merged)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in merged}
    return run
