"""The tensors in a batch or in a module's outputs, however they are nested."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from sfumato import _check

__all__ = ["batch_size", "call", "is_example", "leaves", "mapped", "rows"]


def call(module: nn.Module, batch: Any) -> Any:
    """Call a module on a tensor, a tuple or list of arguments, or a mapping of named arguments."""
    if isinstance(batch, Mapping):
        return module(**batch)
    if isinstance(batch, tuple | list):
        return module(*batch)
    return module(batch)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield every tensor in nested tuples, mappings, dataclasses and plain objects, with its path.

    Parameters
    ----------
    value : object
        A mapping that is also a dataclass, as Hugging Face's ModelOutput is, is read as a mapping.
    path : str
        What the paths begin with.
    """
    if isinstance(value, Tensor):
        yield path, value
    else:
        for name, inner in _children(value):
            yield from leaves(inner, f"{path}.{name}" if path else name)


def _children(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [(str(key), inner) for key, inner in value.items()]
    if isinstance(value, tuple | list):
        return [(str(index), inner) for index, inner in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value)]
    if isinstance(value, nn.Module | type) or not hasattr(value, "__dict__"):
        return []
    return [(name, inner) for name, inner in vars(value).items() if _is_data(inner)]


def _is_data(value: Any) -> bool:
    """Return whether an attribute of a plain object may hold outputs: what can refer back to it does not."""
    return isinstance(value, Tensor) or (
        isinstance(value, tuple | list) and all(isinstance(inner, Tensor) for inner in value)
    )


def mapped(change: Callable[[str, Tensor], Tensor], batch: Any, path: str = "") -> Any:
    """Return a batch of the same form with every tensor changed; what is no tensor stays."""
    if isinstance(batch, Tensor):
        return change(path, batch)
    if isinstance(batch, Mapping):
        fresh: Any = copy.copy(batch)
        for key, inner in batch.items():
            fresh[key] = mapped(change, inner, f"{path}.{key}" if path else str(key))
        return fresh
    if isinstance(batch, tuple | list):
        parts = [
            mapped(change, inner, f"{path}.{index}" if path else str(index))
            for index, inner in enumerate(batch)
        ]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        names = [field.name for field in dataclasses.fields(batch) if field.init]
        inner = {name: mapped(change, getattr(batch, name), f"{path}.{name}") for name in names}
        return dataclasses.replace(batch, **inner)
    return batch


def batch_size(batch: Any) -> int:
    """Return the first dimension of a batch's first tensor that has one.

    Raises
    ------
    ParameterError
        If there is no such tensor.
    """
    for _, tensor in leaves(batch):
        if tensor.ndim:
            return tensor.shape[0]
    remedy = "pass tensors, or lists and mappings of them"
    return _check.refuse_type("batch", "hold a tensor with one row for each example", batch, remedy)


def is_example(tensor: Tensor, size: int) -> bool:
    """Return whether a tensor has one row for each example; others are shared by all and stay as they are."""
    return tensor.ndim > 0 and tensor.shape[0] == size


def rows(batch: Any, index: Tensor) -> Any:
    """Return the batch of these examples only."""
    size = batch_size(batch)
    return mapped(
        lambda _, tensor: (
            torch.index_select(tensor, 0, index.to(tensor.device)) if is_example(tensor, size) else tensor
        ),
        batch,
    )
