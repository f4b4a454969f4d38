"""The ways in which a layer's parameters are used: each is a module around a layer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from tests.learning.engine.layers import Layer

__all__ = ["VARIANTS", "Host"]


class Host(nn.Module):
    """Uses a layer once."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self._run = layer.make(), layer.run
        with torch.no_grad():
            self._run(self.layer, layer.inputs())  # lazy ones take their shapes
            for parameter in self.layer.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))

    def used(self, layer: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
        out: Tensor = self._run(layer, inputs)
        return out.float().flatten(1)

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.used(self.layer, inputs)


def shifted(inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return other inputs of the same form."""
    return tuple(x.roll(1, -1) * (0.5 if x.is_floating_point() else 1) if x.ndim > 1 else x for x in inputs)


class Reused(Host):
    """Uses it twice, on different inputs."""

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.used(self.layer, inputs) + torch.tanh(self.used(self.layer, shifted(inputs)))


class Tied(Host):
    """Has a second layer, whose parameters are the first one's."""

    def __init__(self, layer: Layer) -> None:
        super().__init__(layer)
        self.other = copy.deepcopy(self.layer)
        for name, owner in self.other.named_modules():
            for key in list(owner._parameters):
                owner._parameters[key] = self.layer.get_submodule(name)._parameters[key]

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.used(self.layer, inputs) + torch.tanh(self.used(self.other, shifted(inputs)))


class Functional(Host):
    """Uses the layer's first parameter in an expression of its own too."""

    def forward(self, *inputs: Tensor) -> Tensor:
        out, weight = self.used(self.layer, inputs), next(self.layer.parameters())
        table = weight.reshape(-1, weight.shape[-1] if weight.ndim else 1)
        width = min(out.shape[1], table.shape[1])
        mixed = out[:, :width] @ table[:, :width].float().T
        return torch.cat([out, torch.tanh(mixed)], 1)


class Frozen(Host):
    """The first parameter is not trained; one of the host's own is."""

    def __init__(self, layer: Layer) -> None:
        super().__init__(layer)
        next(self.layer.parameters()).requires_grad_(False)
        self.scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.used(self.layer, inputs) * self.scale


class Autocast(Host):
    """Runs in bfloat16 where autocast does."""

    def forward(self, *inputs: Tensor) -> Tensor:
        has_lstm = any(isinstance(module, nn.LSTM) for module in self.modules())
        with onednn(not has_lstm), torch.autocast("cpu", torch.bfloat16):
            return self.used(self.layer, inputs)


@contextmanager
def onednn(enabled: bool) -> Iterator[None]:
    """Whether PyTorch may use oneDNN: its LSTM in bfloat16 fails on a CPU without AVX-512."""
    settings: Any = torch.backends.mkldnn
    before = settings.enabled
    settings.enabled = enabled
    try:
        yield
    finally:
        settings.enabled = before


VARIANTS: dict[str, Callable[[Layer], Any]] = {
    "plain": Host,
    "reused": Reused,
    "tied": Tied,
    "functional": Functional,
    "frozen": Frozen,
    "autocast": Autocast,
}
