"""A small regression, and runs of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any

import pytest

from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import Neighboring
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    from sfumato.learning import GradientOptions, NoiseOptions, RecordOptions, SamplingOptions
    from sfumato.learning.training.privacy_engine import PrivacyEngine


EXAMPLES = 40


def make_data(examples: int = EXAMPLES) -> TensorDataset:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(examples, 3, generator=generator)
    return TensorDataset(x, x @ torch.tensor([[1.0], [-2.0], [0.5]]) + 0.1)


def make_module() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def grouped(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of make_private, with the fields of its four values in them."""
    kinds: dict[str, Any] = {
        "sampling": SamplingOptions,
        "gradients": GradientOptions,
        "noise": NoiseOptions,
        "record": RecordOptions,
    }
    owners = {part.name: name for name, kind in kinds.items() for part in fields(kind)}
    made = {name: value for name, value in flat.items() if name not in owners}
    for name, kind in kinds.items():
        own = {part: value for part, value in flat.items() if owners.get(part) == name}
        if own:
            made[name] = kind(**own)
    return made


class Made:
    """A run of the regression."""

    def __init__(self, **options: Any) -> None:
        self.module = options.pop("module", None) or make_module()
        rate = options.pop("lr", 0.1)
        self.optimizer: Any = options.pop("optimizer", None) or torch.optim.SGD(
            self.module.parameters(), lr=rate
        )
        batch_size = options.pop("batch_size", 10)
        self.data_loader = options.pop("data_loader", DataLoader(make_data(), batch_size=batch_size))
        self.engine = PrivacyEngine()
        usual: dict[str, Any] = {
            "noise_multiplier": 1.0,
            "max_grad_norm": 1.0,
            "self_test": False,
            "noise_generator": 7,
        }
        made = self.engine.make_private(
            module=self.module,
            optimizer=self.optimizer,
            data_loader=self.data_loader,
            **grouped(usual | options),
        )
        self.same = made[0] is self.module and made[1] is self.optimizer
        self.loader = made[-1]

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.mse_loss(self.module(x), y)

    def epoch(self) -> int:
        steps = 0
        for x, y in self.loader:
            self.optimizer.zero_grad()
            self.loss(x, y).backward()
            self.optimizer.step()
            steps += 1
        return steps

    @property
    def weights(self) -> list[torch.Tensor]:
        return [parameter.detach().clone() for parameter in self.module.parameters()]


@pytest.fixture
def make() -> Callable[..., Made]:
    return Made


@pytest.fixture
def open_ledger() -> Iterator[Callable[..., Ledger]]:
    opened: list[Ledger] = []

    def make_ledger(place: Any = None, **changes: Any) -> Ledger:
        usual: dict[str, Any] = {
            "budget": Budget.approximate(epsilon=10.0, delta=1e-2),
            "privacy_unit": "row",
            "neighboring": Neighboring.ZERO_OUT,
            "dataset": Dataset(schema="x", fingerprint=lambda key: "0" * 64),
            "simulated": True,
        }
        ledger = Ledger.open(place, **(usual | changes))
        opened.append(ledger)
        return ledger

    yield make_ledger
    for ledger in opened:
        ledger.close()


def clipped_mean(module: nn.Module, x: torch.Tensor, y: torch.Tensor, expected: float) -> list[torch.Tensor]:
    """Return gradients clipped to 1 one example at a time, added up, over an expected batch size."""
    sums = [torch.zeros_like(parameter) for parameter in module.parameters()]
    for one, target in zip(x, y, strict=True):
        gradients = torch.autograd.grad(
            nn.functional.mse_loss(module(one[None]), target[None]), list(module.parameters())
        )
        norm = torch.sqrt(sum((g.square().sum() for g in gradients), torch.zeros(())))
        for total, gradient in zip(sums, gradients, strict=True):
            total.add_(gradient * min(1.0, 1.0 / float(norm)))
    return [total / expected for total in sums]
