"""`torch.func.vmap`, silent on operations that it must run one by one: they are right, if slow."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["over_examples"]


def over_examples(function: Callable[..., Any], *tensors: Any, randomness: str = "error") -> Any:
    """Call a function on each example of (nested) tensors whose first dimension is theirs."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
        return torch.func.vmap(function, randomness=randomness)(*tensors)
