"""A batch from shapes alone: what a module is checked with before there is any data."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor

from sfumato import _check

__all__ = ["batch_of"]

_TYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "bool")
_SHAPE = re.compile(r"(?:(?P<name>[A-Za-z_]\w*)=)?(?P<sizes>|[1-9]\d*(?:,[1-9]\d*)*)(?::(?P<type>\w+))?")
_EXAMPLES = 8


def batch_of(*shapes: str) -> Any:
    """Return a batch of zeros for shapes of one example.

    Parameters
    ----------
    *shapes : str
        ``[NAME=]SIZE,SIZE,...[:TYPE]`` for each argument of a module, such as ``3,32,32``, ``128:int64`` or
        ``input_ids=128:int64``. No sizes at all is one number. The type is float32 unless given.

    Returns
    -------
    Tensor, tuple or dict
        One argument, several, or named ones; of 8 examples.

    Raises
    ------
    ParameterError
        If a shape cannot be read, or only some have names.

    Examples
    --------
    >>> batch_of("3,32,32").shape
    torch.Size([8, 3, 32, 32])
    >>> {name: entries.dtype for name, entries in batch_of("ids=16:int64", "weight=").items()}
    {'ids': torch.int64, 'weight': torch.float32}
    """
    if not shapes:
        _check.refuse("shape", "be given", None, "pass the shape of one example, such as 3,32,32")
    arguments: list[tuple[str | None, Tensor]] = []
    for shape in shapes:
        found = _SHAPE.fullmatch(shape.replace(" ", ""))
        kind = (found["type"] or "float32") if found else ""
        if found is None or kind not in _TYPES:
            remedy = f"pass [NAME=]SIZE,SIZE,...[:TYPE] of type {', '.join(_TYPES)}"
            return _check.refuse("shape", "name the sizes of one example", shape, remedy)
        sizes = [int(size) for size in found["sizes"].split(",") if size]
        arguments.append((found["name"], torch.zeros(_EXAMPLES, *sizes, dtype=getattr(torch, kind))))
    names = [name for name, _ in arguments]
    if not any(names):
        return arguments[0][1] if len(arguments) == 1 else tuple(tensor for _, tensor in arguments)
    if None in names or len(set(names)) < len(names):
        remedy = "write x=3,32,32 for each argument"
        _check.refuse("shape", "have a name of its own for each argument, or for none", shapes, remedy)
    return dict(arguments)
