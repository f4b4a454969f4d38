"""Functions that are run as the smaller calls they consist of, so that each use of a parameter is seen.

Recurrent layers become loops over their cells: the fused calls do not separate single uses of a weight.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.overrides import TorchFunctionMode

__all__ = ["CELLS", "LAYERS", "UnfusedRecurrence", "decomposition_of"]


_State: TypeAlias = tuple[Tensor, ...]
_Cell: TypeAlias = Callable[[Tensor, _State, "_Weights"], _State]


class _Weights:
    """One direction of one layer.

    Parameters
    ----------
    tensors : sequence of Tensor
        Input weight, hidden weight, then both biases if there are any, then the projection if there is one.
    biased : bool
        Whether there are biases.
    """

    def __init__(self, tensors: Sequence[Tensor], *, biased: bool) -> None:
        self.input, self.hidden = tensors[:2]
        self.input_bias = tensors[2] if biased else None
        self.hidden_bias = tensors[3] if biased else None
        rest = tensors[4 if biased else 2 :]
        self.projection = rest[0] if rest else None

    def of_input(self, values: Tensor) -> Tensor:
        return F.linear(values, self.input, self.input_bias)

    def of_hidden(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.hidden, self.hidden_bias)


def _lstm(given: Tensor, state: _State, weights: _Weights) -> _State:
    gates = given + weights.of_hidden(state[0])
    enter, forget, fresh, leave = gates.chunk(4, -1)
    cell = forget.sigmoid() * state[1] + enter.sigmoid() * fresh.tanh()
    hidden = leave.sigmoid() * cell.tanh()
    return (hidden if weights.projection is None else F.linear(hidden, weights.projection)), cell


def _gru(given: Tensor, state: _State, weights: _Weights) -> _State:
    (hidden,) = state
    reset, update, fresh = given.chunk(3, -1)
    own_reset, own_update, own_fresh = weights.of_hidden(hidden).chunk(3, -1)
    fresh = (fresh + (reset + own_reset).sigmoid() * own_fresh).tanh()
    return (fresh + (update + own_update).sigmoid() * (hidden - fresh),)


def _plain(change: Callable[[Tensor], Tensor]) -> _Cell:
    def cell(given: Tensor, state: _State, weights: _Weights) -> _State:
        return (change(given + weights.of_hidden(state[0])),)

    return cell


def _along(
    cell: _Cell, values: Tensor, state: _State, weights: _Weights, *, back: bool
) -> tuple[Any, _State]:
    """Run a cell along the first dimension; return its outputs and the last state."""
    given = weights.of_input(values)
    outputs: list[Tensor] = []
    for index in reversed(range(len(values))) if back else range(len(values)):
        state = cell(given[index], state, weights)
        outputs.append(state[0])
    return torch.stack(outputs[::-1] if back else outputs), state


def _layers(cell: _Cell, states: int) -> Callable[..., Any]:
    """Return what stands in for a fused recurrent layer; given the same arguments."""

    def run(  # noqa: PLR0917 - the arguments of torch's own
        values: Tensor,
        hidden: Any,
        tensors: Sequence[Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> Any:
        start: _State = tuple(hidden) if states > 1 else (hidden,)
        sides = 2 if bidirectional else 1
        each = len(tensors) // (num_layers * sides)
        values = values.transpose(0, 1) if batch_first and values.dim() == 3 else values
        last: list[_State] = []
        for layer in range(num_layers):
            outputs = []
            for side in range(sides):
                index = layer * sides + side
                weights = _Weights(tensors[index * each : (index + 1) * each], biased=has_biases)
                state = tuple(part[index] for part in start)
                output, state = _along(cell, values, state, weights, back=side == 1)
                outputs.append(output)
                last.append(state)
            values = torch.cat(outputs, -1) if bidirectional else outputs[0]
            if dropout and layer < num_layers - 1:
                values = F.dropout(values, dropout, train)
        ends = [torch.stack(parts) for parts in zip(*last, strict=True)]
        return (values.transpose(0, 1) if batch_first and values.dim() == 3 else values), *ends

    return run


def _single(cell: _Cell, states: int) -> Callable[..., Any]:
    """Return what stands in for a fused cell."""

    def run(values: Tensor, hidden: Any, *tensors: Tensor | None) -> Any:
        given = [tensor for tensor in tensors if tensor is not None]
        weights = _Weights(given, biased=len(given) > 2)
        state = cell(weights.of_input(values), tuple(hidden) if states > 1 else (hidden,), weights)
        return state if states > 1 else state[0]

    return run


LAYERS: dict[Any, Callable[..., Any]] = {
    torch.lstm: _layers(_lstm, 2),
    torch.gru: _layers(_gru, 1),
    torch.rnn_tanh: _layers(_plain(torch.tanh), 1),
    torch.rnn_relu: _layers(_plain(torch.relu), 1),
}
"""Fused layers to their loops."""

CELLS: dict[Any, Callable[..., Any]] = {
    torch.lstm_cell: _single(_lstm, 2),
    torch.gru_cell: _single(_gru, 1),
    torch.rnn_tanh_cell: _single(_plain(torch.tanh), 1),
    torch.rnn_relu_cell: _single(_plain(torch.relu), 1),
}
"""Fused cells to their parts."""


def decomposition_of(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Callable[[], Any] | None:
    """Return what runs in place of a call with a parameter among its arguments, if anything does."""
    decomposed = _DECOMPOSITIONS.get(func)
    if decomposed is None or (func in LAYERS and not _regular(args, kwargs)):
        return None
    if func is F.embedding_bag and not _is_sparse(args, kwargs):
        return None
    if func in _AFFINE and not any(isinstance(value, Tensor) for value in _affine(func, args, kwargs)):
        return None
    return partial(decomposed, *args, **kwargs)


class UnfusedRecurrence(TorchFunctionMode):
    """Runs fused recurrent layers as loops over their cells: vmap has no rule for the fused ones."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        decomposed = decomposition_of(func, args, kwargs) if func in LAYERS or func in CELLS else None
        return func(*args, **kwargs) if decomposed is None else decomposed()


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


def _regular(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether a recurrent layer gets sequences of one length; packed ones come with batch sizes.

    Both have nine arguments; the fourth says whether there are biases, or is the weights.
    """
    return not kwargs and len(args) == 9 and isinstance(args[3], bool)


_AFFINE = {F.rms_norm: 2, F.instance_norm: 3}


def _affine(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the weight and bias of a norm: without them it has no parameters to separate."""
    return (*args[_AFFINE[func] : _AFFINE[func] + 2], kwargs.get("weight"), kwargs.get("bias"))


def _rms_norm(
    input: Tensor,  # noqa: A002
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    plain = F.rms_norm(input, list(normalized_shape), None, eps)
    return plain if weight is None else plain * weight


def _instance_norm(  # noqa: PLR0917 - the arguments of torch's own
    input: Tensor,  # noqa: A002
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    plain = F.instance_norm(
        input, running_mean, running_var, None, None, use_input_stats, momentum, eps
    ).movedim(1, -1)
    plain = plain if weight is None else plain * weight
    return (plain if bias is None else plain + bias).movedim(-1, 1)


def _dense_bag(*args: Any, **kwargs: Any) -> Tensor:
    bound = inspect.signature(F.embedding_bag).bind(*args, **kwargs)
    bound.arguments["sparse"] = False
    pooled: Tensor = F.embedding_bag(*bound.args, **bound.kwargs)
    return pooled


def _is_sparse(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    return bool(kwargs.get("sparse", args[7] if len(args) > 7 else False))


def _addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:  # noqa: A002
    product = torch.mm(mat1, mat2)
    product = product if alpha == 1 else product * alpha
    return product + (input if beta == 1 else input * beta)


def _in_place(change: Callable[[Tensor, Any], Tensor]) -> Callable[..., Any]:
    """Return what writes the result into the first argument, as the call would: others may look at it."""

    def run(one: Tensor, other: Any) -> Tensor:
        return one.copy_(change(one.clone(), other))

    return run


_DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    F.multi_head_attention_forward: _opened(F.multi_head_attention_forward),
    F.rms_norm: _rms_norm,
    F.instance_norm: _instance_norm,
    F.embedding_bag: _dense_bag,
    **dict.fromkeys((torch.addmm, Tensor.addmm), _addmm),
    **dict.fromkeys((Tensor.add_, Tensor.__iadd__), _in_place(torch.add)),
    **dict.fromkeys((Tensor.sub_, Tensor.__isub__), _in_place(torch.sub)),
    **dict.fromkeys((Tensor.mul_, Tensor.__imul__), _in_place(torch.mul)),
    **LAYERS,
    **CELLS,
}
