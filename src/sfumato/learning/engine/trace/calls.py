"""Calls of torch functions: the tensors in their arguments, and how they are called again with others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

__all__ = ["replaced", "tensors_in"]


def tensors_in(*values: Any) -> list[Tensor]:
    """Return every tensor in nested tuples, lists and mappings, in order."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, tuple | list):
            found += tensors_in(*value)
        elif isinstance(value, Mapping):
            found += tensors_in(*value.values())
    return found


def replaced(value: Any, fresh: Iterator[Any]) -> Any:
    """Return the same nesting with each tensor exchanged for the next of ``fresh``."""
    if isinstance(value, Tensor):
        return next(fresh)
    if isinstance(value, tuple | list):
        inner: Sequence[Any] = [replaced(part, fresh) for part in value]
        return type(value)(*inner) if hasattr(value, "_fields") else type(value)(inner)
    if isinstance(value, Mapping):
        return {key: replaced(part, fresh) for key, part in value.items()}
    return value


def called(func: Callable[..., Any], args: Any, kwargs: Any, tensors: Sequence[Any]) -> Any:
    """Call a function with its tensors exchanged, in the order of `tensors_in`."""
    fresh = iter(tensors)
    args = replaced(tuple(args), fresh)
    return func(*args, **replaced(kwargs, fresh))
