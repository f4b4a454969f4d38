"""Random calls replaced by fixed values: only so can two runs of a forward be compared."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

__all__ = ["DETERMINISTIC"]

_Still = Callable[[Any, Sequence[Any], Mapping[str, Any]], Any]


def _same(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return args[0] if args else kwargs["input"]


def _filled(value: float) -> _Still:
    def still(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return func(*args, **kwargs).fill_(value)

    return still


def _without_dropout(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    args = [*args[:4], 0.0, *args[5:]] if len(args) > 4 else args
    return func(*args, **{name: 0.0 if name == "dropout_p" else value for name, value in kwargs.items()})


def _in_eval(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    bound = inspect.signature(func).bind(*args, **kwargs)
    bound.arguments["training"] = False
    return func(*bound.args, **bound.kwargs)


DETERMINISTIC: dict[Any, _Still] = {
    **dict.fromkeys(
        (
            F.dropout,
            F.dropout1d,
            F.dropout2d,
            F.dropout3d,
            F.alpha_dropout,
            F.feature_alpha_dropout,
            torch.dropout,
            torch.dropout_,
            torch.alpha_dropout,
            torch.feature_dropout,
            torch.feature_alpha_dropout,
        ),
        _same,
    ),
    **dict.fromkeys((torch.rand, torch.rand_like, Tensor.uniform_), _filled(0.5)),
    **dict.fromkeys((torch.randn, torch.randn_like, Tensor.normal_, torch.normal), _filled(0.25)),
    **dict.fromkeys((torch.bernoulli, Tensor.bernoulli, Tensor.bernoulli_), _filled(1.0)),
    F.scaled_dot_product_attention: _without_dropout,
    F.rrelu: _in_eval,
}
"""Each function to what stands in for it."""
