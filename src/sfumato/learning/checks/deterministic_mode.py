"""Train mode without dropout, so that two ways through a module can be compared."""

from __future__ import annotations

import inspect
from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.modules.dropout import _DropoutNd
from torch.overrides import TorchFunctionMode

__all__ = ["aligned", "without_dropout"]

_SWITCHED: dict[Any, tuple[str, object]] = {
    F.dropout: ("training", False),
    F.dropout1d: ("training", False),
    F.dropout2d: ("training", False),
    F.dropout3d: ("training", False),
    F.alpha_dropout: ("training", False),
    F.feature_alpha_dropout: ("training", False),
    F.rrelu: ("training", False),
    F.multi_head_attention_forward: ("dropout_p", 0.0),
}
"""Functions of Python, with the parameter that turns their randomness off."""

_BY_POSITION: dict[Any, tuple[int, str, object]] = {
    torch.dropout: (2, "train", False),
    F.scaled_dot_product_attention: (4, "dropout_p", 0.0),
}
"""The same for functions that have no signature, with its place."""


_PACKED = (torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu)


def _one_by_one(
    func: Any, data: torch.Tensor, batch_sizes: torch.Tensor, start: Any, weights: Any, *rest: Any
) -> Any:
    """Run packed sequences each alone: kernels round by how many there are, which depends on the others."""
    biased, layers, _, train, bidirectional = rest
    sizes = batch_sizes.tolist()
    first = [sum(sizes[:step]) for step in range(len(sizes))]
    states = tuple(start) if isinstance(start, tuple | list) else (start,)
    made, places = [], []
    for place in range(sizes[0]):
        rows = torch.tensor([at + place for at, size in zip(first, sizes, strict=True) if size > place])
        own = tuple(state[:, place : place + 1].contiguous() for state in states)
        hidden = own if len(own) > 1 else own[0]
        alone = torch.ones(len(rows), dtype=torch.int64)
        made.append(func(data[rows], alone, hidden, weights, biased, layers, 0.0, train, bidirectional))
        places.append(rows)
    output = torch.cat([one[0] for one in made])[torch.argsort(torch.cat(places))]
    return output, *(torch.cat(parts, 1) for parts in zip(*(one[1:] for one in made), strict=True))


class _Calm(TorchFunctionMode):
    """Takes the randomness out of functions, wherever they are called."""

    def __init__(self, functions: Container[Any]) -> None:
        super().__init__()
        self._functions = functions

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func not in self._functions:
            return func(*args, **kwargs)
        if func in _PACKED:
            packed = len(args) == 9 and not isinstance(args[3], bool)
            return _one_by_one(func, *args) if packed else func(*args, **kwargs)
        if func in _SWITCHED:
            name, value = _SWITCHED[func]
            bound = inspect.signature(func).bind(*args, **kwargs)
            bound.arguments[name] = value
            return func(*bound.args, **bound.kwargs)
        if func in _BY_POSITION:
            index, name, value = _BY_POSITION[func]
            if len(args) > index:
                args = (*args[:index], value, *args[index + 1 :])
            else:
                kwargs[name] = value
        return func(*args, **kwargs)


def aligned() -> TorchFunctionMode:
    """Keep the draws of each example apart from the values of others.

    Randomized ReLU draws for negative entries only: what is drawn for one example depends on how many the
    others have. The distribution is the same, but two runs cannot be compared. Packed sequences run each
    alone, without dropout between layers.
    """
    return _Calm({F.rrelu, *_PACKED})


_RATES: dict[type[nn.Module], str] = {
    _DropoutNd: "p",
    nn.RNNBase: "dropout",
    nn.MultiheadAttention: "dropout",
}


@contextmanager
def without_dropout(module: nn.Module) -> Iterator[None]:
    """Turn dropout off; the modules stay in the mode that they are in.

    In layers by their rates, which hold in a backward pass too, where a forward may be run again; elsewhere
    in the functions that are called, which a backward through ``Tensor.backward`` does not see.
    """
    rates = [
        (inner, name, getattr(inner, name))
        for inner in module.modules()
        for kind, name in _RATES.items()
        if isinstance(inner, kind)
    ]
    for inner, name, _ in rates:
        setattr(inner, name, 0.0)
    try:
        with _Calm(_SWITCHED.keys() | _BY_POSITION.keys()):
            yield
    finally:
        for inner, name, rate in rates:
            setattr(inner, name, rate)
