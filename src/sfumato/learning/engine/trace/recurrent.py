"""Recurrent layers as loops over their cells: the fused calls do not separate single uses of a weight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

__all__ = ["CELLS", "LAYERS"]

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
