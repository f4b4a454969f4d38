"""The layers of torch.nn that the engine is held against, with inputs for them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["LAYERS", "Layer"]

BATCH = 3


@dataclass(frozen=True)
class Layer:
    """A layer, what it is called with, and how its outputs become one row for each example."""

    make: Callable[[], nn.Module]
    shapes: tuple[tuple[int, ...], ...]
    whole: int = 0
    """Where the first input holds whole numbers: how many values there are."""
    run: Callable[[Any, tuple[Tensor, ...]], Any] = lambda layer, inputs: layer(*inputs)

    def inputs(self) -> tuple[Tensor, ...]:
        generator = torch.Generator().manual_seed(1)
        drawn = [torch.randn(BATCH, *shape, generator=generator) for shape in self.shapes]
        if self.whole:
            drawn[0] = torch.randint(self.whole, (BATCH, *self.shapes[0]), generator=generator)
        return tuple(drawn)


class Scaled(nn.Module):
    """A parameter of no dimension, on its own."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale


def act(make: Callable[[], nn.Module]) -> Layer:
    """A layer without parameters stands between two that have some."""
    return Layer(lambda: nn.Sequential(nn.Linear(4, 6), make(), nn.LazyLinear(2)), ((4,),))


def image(make: Callable[[], nn.Module]) -> Layer:
    return Layer(
        lambda: nn.Sequential(nn.Conv2d(2, 4, 3), make(), nn.Flatten(), nn.LazyLinear(2)), ((2, 8, 8),)
    )


def both(outputs: Any) -> Tensor:
    """Return the outputs of a recurrent layer and its last states."""
    out, states = outputs
    states = states if isinstance(states, tuple) else (states,)
    return torch.cat([out.flatten(1), *(state.transpose(0, 1).flatten(1) for state in states)], 1)


def recurrent(make: Callable[[], nn.Module]) -> Layer:
    return Layer(make, ((5, 4),), run=lambda layer, inputs: both(layer(*inputs)))


def attention(**options: Any) -> Callable[[], nn.Module]:
    return lambda: nn.MultiheadAttention(4, 2, batch_first=True, **options)


def projected() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # oneDNN has no such kernel, and says so once
        layer = nn.LSTM(4, 3, batch_first=True, proj_size=2)
        layer(torch.zeros(1, 1, 4))
    return layer


def flattened(layer: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
    (x,) = inputs
    out: Tensor = layer(x.flatten(0, 1)).unflatten(0, x.shape[:2])
    return out


def time_first(layer: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
    out = layer(*(x.transpose(0, 1) for x in inputs))
    whole: Tensor = out[0] if isinstance(out, tuple) else out
    return whole.transpose(0, 1)


def first(layer: nn.Module, inputs: tuple[Tensor, ...]) -> Any:
    return layer(*inputs)[0]


def masked(layer: nn.Module, inputs: tuple[Tensor, ...]) -> Any:
    (x,) = inputs
    hidden = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
    return layer(x, x, x, attn_mask=hidden, need_weights=False)[0]


LAYERS: dict[str, Layer] = {
    "Linear": Layer(lambda: nn.Linear(4, 3), ((4,),)),
    "Linear, no bias": Layer(lambda: nn.Linear(4, 3, bias=False), ((4,),)),
    "Linear on sequences": Layer(lambda: nn.Linear(4, 3), ((5, 4),)),
    "Linear on long sequences": Layer(lambda: nn.Linear(2, 2), ((40, 2),)),
    "Linear on grids": Layer(lambda: nn.Linear(4, 3), ((2, 3, 4),)),
    "Linear, flattened": Layer(lambda: nn.Linear(4, 3), ((5, 4),), run=flattened),
    "Linear, time first": Layer(lambda: nn.Linear(4, 3), ((5, 4),), run=time_first),
    "Bilinear": Layer(lambda: nn.Bilinear(4, 3, 2), ((4,), (3,))),
    "Conv1d": Layer(lambda: nn.Conv1d(2, 3, 3, stride=2, padding=1), ((2, 9),)),
    "Conv1d, dilated": Layer(lambda: nn.Conv1d(2, 3, 3, dilation=2, bias=False), ((2, 9),)),
    "Conv2d": Layer(lambda: nn.Conv2d(2, 3, 3), ((2, 6, 6),)),
    "Conv2d, strided": Layer(lambda: nn.Conv2d(2, 3, (3, 2), stride=2, padding=(1, 0)), ((2, 6, 5),)),
    "Conv2d, groups": Layer(lambda: nn.Conv2d(4, 6, 3, groups=2), ((4, 6, 6),)),
    "Conv2d, depthwise": Layer(lambda: nn.Conv2d(4, 4, 3, groups=4, padding="same"), ((4, 6, 6),)),
    "Conv2d, reflected": Layer(lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"), ((2, 6, 6),)),
    "Conv2d, one by one": Layer(lambda: nn.Conv2d(4, 3, 1), ((4, 5, 5),)),
    "Conv3d": Layer(lambda: nn.Conv3d(2, 3, 2), ((2, 4, 4, 4),)),
    "ConvTranspose1d": Layer(lambda: nn.ConvTranspose1d(2, 3, 3, stride=2), ((2, 5),)),
    "ConvTranspose2d": Layer(lambda: nn.ConvTranspose2d(2, 3, 3, stride=2, output_padding=1), ((2, 4, 4),)),
    "ConvTranspose3d": Layer(lambda: nn.ConvTranspose3d(2, 3, 2), ((2, 3, 3, 3),)),
    "Embedding": Layer(lambda: nn.Embedding(5, 4), ((6,),), whole=5),
    "Embedding, padded": Layer(lambda: nn.Embedding(5, 4, padding_idx=1), ((6,),), whole=5),
    "Embedding, one id each": Layer(lambda: nn.Embedding(5, 4), ((),), whole=5),
    "Embedding, by frequency": Layer(
        lambda: nn.Embedding(5, 4, scale_grad_by_freq=False), ((2, 3),), whole=5
    ),
    "EmbeddingBag, mean": Layer(lambda: nn.EmbeddingBag(5, 4), ((6,),), whole=5),
    "EmbeddingBag, sum": Layer(lambda: nn.EmbeddingBag(5, 4, mode="sum"), ((6,),), whole=5),
    "EmbeddingBag, max": Layer(lambda: nn.EmbeddingBag(5, 4, mode="max"), ((6,),), whole=5),
    "LayerNorm": Layer(lambda: nn.LayerNorm(4), ((4,),)),
    "LayerNorm on sequences": Layer(lambda: nn.LayerNorm(4), ((5, 4),)),
    "LayerNorm of two": Layer(lambda: nn.LayerNorm((5, 4), bias=False), ((5, 4),)),
    "GroupNorm": Layer(lambda: nn.GroupNorm(2, 4), ((4, 3, 3),)),
    "GroupNorm on rows": Layer(lambda: nn.GroupNorm(2, 6), ((6,),)),
    "RMSNorm": Layer(lambda: nn.RMSNorm(4), ((5, 4),)),
    "InstanceNorm1d": Layer(lambda: nn.InstanceNorm1d(3, affine=True), ((3, 6),)),
    "InstanceNorm2d": Layer(lambda: nn.InstanceNorm2d(3, affine=True), ((3, 4, 4),)),
    "InstanceNorm3d": Layer(lambda: nn.InstanceNorm3d(2, affine=True), ((2, 2, 3, 2),)),
    "PReLU": Layer(nn.PReLU, ((4,),)),
    "PReLU by channel": Layer(lambda: nn.PReLU(3), ((3, 4, 4),)),
    "a number": Layer(lambda: nn.Sequential(Scaled(), nn.Linear(4, 2)), ((4,),)),
    "RNN": recurrent(lambda: nn.RNN(4, 3, batch_first=True)),
    "RNN, rectified": recurrent(lambda: nn.RNN(4, 3, nonlinearity="relu", batch_first=True)),
    "LSTM": recurrent(lambda: nn.LSTM(4, 3, batch_first=True)),
    "LSTM, deep": recurrent(lambda: nn.LSTM(4, 3, 2, batch_first=True)),
    "LSTM, both ways": recurrent(lambda: nn.LSTM(4, 3, batch_first=True, bidirectional=True)),
    "LSTM, projected": recurrent(projected),
    "LSTM, time first": Layer(lambda: nn.LSTM(4, 3), ((5, 4),), run=time_first),
    "GRU": recurrent(lambda: nn.GRU(4, 3, batch_first=True)),
    "GRU, deep and both ways": recurrent(lambda: nn.GRU(4, 3, 2, batch_first=True, bidirectional=True)),
    "RNNCell": Layer(lambda: nn.RNNCell(4, 3), ((4,), (3,))),
    "LSTMCell": Layer(lambda: nn.LSTMCell(4, 3), ((4,),), run=first),
    "GRUCell": Layer(lambda: nn.GRUCell(4, 3), ((4,), (3,))),
    "MultiheadAttention": Layer(attention(), ((5, 4),) * 3, run=first),
    "MultiheadAttention, other widths": Layer(attention(kdim=3, vdim=2), ((5, 4), (6, 3), (6, 2)), run=first),
    "MultiheadAttention, with a key of its own": Layer(attention(add_bias_kv=True), ((5, 4),) * 3, run=first),
    "MultiheadAttention, causal": Layer(attention(), ((5, 4),), run=masked),
    "TransformerEncoderLayer": Layer(
        lambda: nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0, batch_first=True), ((5, 4),)
    ),
    "TransformerEncoderLayer, norm first": Layer(
        lambda: nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0, norm_first=True), ((5, 4),), run=time_first
    ),
    "TransformerDecoderLayer": Layer(
        lambda: nn.TransformerDecoderLayer(4, 2, 6, dropout=0.0, batch_first=True), ((5, 4), (6, 4))
    ),
    "Softmax": act(lambda: nn.Softmax(-1)),
    "GELU": act(nn.GELU),
    "ReLU in place": act(lambda: nn.ReLU(inplace=True)),
    "GLU": act(nn.GLU),
    "Unflatten": act(lambda: nn.Sequential(nn.Unflatten(1, (2, 3)), nn.Flatten())),
    "MaxPool2d": image(lambda: nn.MaxPool2d(2)),
    "AdaptiveAvgPool2d": image(lambda: nn.AdaptiveAvgPool2d(2)),
    "Upsample": image(lambda: nn.Upsample(scale_factor=2, mode="bilinear")),
    "PixelShuffle": image(lambda: nn.PixelShuffle(2)),
    "LocalResponseNorm": image(lambda: nn.LocalResponseNorm(2)),
    "Unfold": image(lambda: nn.Unfold(2)),
}
