"""Fashion-MNIST's images and labels, from Debian's package ``dataset-fashion-mnist`` or a folder like it."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

__all__ = ["FOLDER", "Rows", "read"]

FOLDER = Path("/usr/share/datasets/fashion-mnist")


def read(folder: Path, part: str) -> tuple[Tensor, Tensor]:
    """Return the images of ``train`` or ``t10k``, (n, 28, 28) in [0, 1], and their labels."""
    images = _bytes(folder / f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28)
    labels = _bytes(folder / f"{part}-labels-idx1-ubyte.gz", 8)
    return torch.from_numpy(images.copy()).float() / 255, torch.from_numpy(labels.copy()).long()


def _bytes(path: Path, header: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
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
