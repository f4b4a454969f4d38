"""Fashion-MNIST's images and labels, from Debian's package ``dataset-fashion-mnist`` or a folder like it."""

from __future__ import annotations

import gzip
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import Dataset

__all__ = ["FOLDER", "Rows", "Split", "held_out", "over_seeds", "pixels", "read", "train_epochs"]

FOLDER = Path("/usr/share/datasets/fashion-mnist")


def read(folder: Path, part: str) -> tuple[Tensor, Tensor]:
    """Return the images of ``train`` or ``t10k``, (n, 28, 28) in [0, 1], and their labels."""
    images, labels = pixels(folder, part)
    return torch.from_numpy(images.copy()).float() / 255, torch.from_numpy(labels.copy()).long()


def pixels(folder: Path, part: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the images of ``train`` or ``t10k`` as they are kept, (n, 28, 28), and their labels."""
    images = _bytes(folder / f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28)
    return images, _bytes(folder / f"{part}-labels-idx1-ubyte.gz", 8)


def _bytes(path: Path, header: int) -> NDArray[np.uint8]:
    if not path.is_file():
        raise SystemExit(
            f"{path} must be there: install Debian's package dataset-fashion-mnist, or pass --data FOLDER "
            "with the four .gz files of github.com/zalandoresearch/fashion-mnist"
        )
    return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=header)


@dataclass(frozen=True)
class Rows(Dataset[tuple[Tensor, Tensor]]):
    """Examples that are fetched a batch at a time; to be collated by `Rows.collate`."""

    inputs: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.inputs[index], self.labels[index]

    def __getitems__(self, indices: list[int]) -> tuple[Tensor, Tensor]:
        chosen = torch.as_tensor(indices)
        return self.inputs[chosen], self.labels[chosen]

    @staticmethod
    def collate(batch: Any) -> tuple[Tensor, Tensor]:
        """Return a batch as it was fetched."""
        inputs, labels = batch
        return inputs, labels


@dataclass(frozen=True)
class Split:
    """What is learned from, and what the result is tried on."""

    inputs: Tensor
    labels: Tensor
    test_inputs: Tensor
    test_labels: Tensor

    @torch.no_grad()
    def accuracy(self, module: nn.Module) -> float:
        """Return the share of the test's examples that a module tells right."""
        told = torch.cat([module(part).argmax(dim=1) for part in self.test_inputs.split(1000)])
        return float((told == self.test_labels).float().mean())


def held_out(inputs: Tensor, labels: Tensor, count: int = 10_000) -> Split:
    """Return a split that tries the result on the last of the training examples."""
    return Split(inputs[:-count], labels[:-count], inputs[-count:], labels[-count:])


def train_epochs(
    module: nn.Module, optimizer: Any, loader: Iterable[tuple[Tensor, Tensor]], epochs: int
) -> None:
    """Train as anybody would: the private step is the optimizer's."""
    for _ in range(epochs):
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(module(inputs), labels).backward()
            optimizer.step()


def over_seeds(train: Callable[[int], tuple[float, float]], seeds: int, promise: str) -> None:
    """Print what each seed's training reaches, one line each, and their mean."""
    results = []
    for seed in range(seeds):
        start = time.perf_counter()
        right, epsilon = train(seed)
        results.append(right)
        spent = time.perf_counter() - start
        print(f"seed {seed}: {right:.2%} at epsilon {epsilon:.3f}, {spent:.0f} s", flush=True)
    print(f"mean {statistics.mean(results):.2%} of {len(results)} seeds at {promise}")
