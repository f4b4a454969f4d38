"""An image classifier as Opacus's tutorials train it: only the import is another."""

from __future__ import annotations

import numpy as np
import pytest

from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import nn, optim
    from torch.utils.data import DataLoader, TensorDataset

    from sfumato.learning import BatchMemoryManager, ModuleValidator, PrivacyEngine

    class Net(nn.Module):
        """Has a layer that mixes examples, which the validator replaces."""

        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(1, 8, 3, padding=1)
            self.norm = nn.BatchNorm2d(8)
            self.fc = nn.Linear(8 * 4 * 4, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = nn.functional.relu(self.norm(self.conv(x)))
            out: torch.Tensor = self.fc(nn.functional.max_pool2d(x, 2).flatten(1))
            return out


def digits() -> tuple[TensorDataset, TensorDataset]:
    datasets = pytest.importorskip("sklearn.datasets")
    found = datasets.load_digits()
    order = np.random.default_rng(0).permutation(len(found.target))
    x = torch.tensor(found.images[order] / 16.0, dtype=torch.float32)[:, None]
    y = torch.tensor(found.target[order])
    return TensorDataset(x[:1400], y[:1400]), TensorDataset(x[1400:], y[1400:])


def test_the_tutorial_runs_and_learns() -> None:
    max_grad_norm, epsilon, delta, epochs = 1.0, 8.0, 1e-4, 6
    train_dataset, test_dataset = digits()
    train_loader = DataLoader(train_dataset, batch_size=128)
    torch.manual_seed(0)
    model: nn.Module = Net()

    assert ModuleValidator.validate(model, strict=False)
    model = ModuleValidator.fix(model)
    assert not ModuleValidator.validate(model, strict=False)

    criterion = nn.CrossEntropyLoss()
    optimizer = optim.RMSprop(model.parameters(), lr=5e-3)
    privacy_engine = PrivacyEngine()
    model, optimizer, train_loader = privacy_engine.make_private_with_epsilon(
        module=model,
        optimizer=optimizer,
        data_loader=train_loader,
        epochs=epochs,
        target_epsilon=epsilon,
        target_delta=delta,
        max_grad_norm=max_grad_norm,
        noise_generator=torch.Generator().manual_seed(0),  # a simulation: the test gives one number
    )
    assert optimizer.noise_multiplier > 0.4
    for _ in range(epochs):
        model.train()
        losses = []
        with BatchMemoryManager(
            data_loader=train_loader, max_physical_batch_size=64, optimizer=optimizer
        ) as memory_safe_data_loader:
            for images, target in memory_safe_data_loader:
                optimizer.zero_grad()
                output = model(images)
                loss = criterion(output, target)
                losses.append(loss.item())
                loss.backward()
                optimizer.step()
        assert privacy_engine.get_epsilon(delta) <= epsilon
    assert privacy_engine.accountant.get_epsilon(delta=delta) > 0.95 * epsilon
    model.eval()
    with torch.no_grad():
        right = [model(x).argmax(1) == y for x, y in DataLoader(test_dataset, batch_size=397)]
    assert float(torch.cat(right).float().mean()) > 0.7
