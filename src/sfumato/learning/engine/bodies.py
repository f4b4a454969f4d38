"""Functions that are run as the smaller calls they consist of, so that each use of a parameter is seen."""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import cache
from typing import Any

import torch.nn.functional as F  # noqa: N812

__all__ = ["body_of"]

_OPENED = {F.multi_head_attention_forward}


@cache
def _opened(func: Any) -> Callable[..., Any]:
    """Return a Python function of torch without its question whether someone overrides it."""
    names = {"has_torch_function": _nobody, "has_torch_function_unary": _nobody}
    space = func.__globals__ | names | {"has_torch_function_variadic": _nobody}
    fresh = types.FunctionType(func.__code__, space, func.__name__, func.__defaults__, func.__closure__)
    fresh.__kwdefaults__ = func.__kwdefaults__
    return fresh


def _nobody(*_: object) -> bool:
    return False


def body_of(func: Any) -> Callable[..., Any] | None:
    """Return what runs in place of a function when a parameter is among its arguments, if anything does."""
    return _opened(func) if func in _OPENED else None
