"""Fashion-MNIST at epsilon 3: a linear model on frozen scattering features, trained by DP-SGD.

Run ``python examples/fashion_scattering.py`` (about three minutes for the features, then one for each seed).
With ``--choose`` clip norm and learning rate are tried: trained on the first 50,000 training images, tested
on the other 10,000. That choice looked at the data and is not in epsilon; `sfumato.learning.tune` would
charge for it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch
from fashion_mnist import FOLDER, Rows, Split, held_out, over_seeds, read, train_epochs
from scattering import Scattering, group_normalised
from torch import Tensor, nn
from torch.utils.data import DataLoader

from sfumato.learning import PrivacyEngine, SamplingOptions

EPSILON, DELTA = 3.0, 1e-5
BATCH, EPOCHS, CLIP, MOMENTUM, RATE = 4096, 40, 0.3, 0.9, 67.0
CHOICES = tuple((clip, step / clip) for clip in (0.01, 0.1, 0.3, 1.0) for step in (2.0, 6.0, 20.0))
"""Clip norms and learning rates: the most by which one example moves the weights is among three."""


def features(images: Tensor, part: int = 200) -> Tensor:
    """Return each image's scattering, normalised by itself: rows of length 1."""
    scattering = Scattering(size=28)
    rows = [group_normalised(scattering(chunk), 27).flatten(1) for chunk in images.split(part)]
    return nn.functional.normalize(torch.cat(rows))


def train(data: Split, *, clip: float = CLIP, rate: float = RATE, seed: int | None) -> tuple[float, float]:
    """Train once; return the accuracy and the epsilon. A seed simulates, so that a run can be repeated."""
    model = nn.Linear(data.inputs.shape[1], 10)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    batch = round(BATCH * len(data.labels) / 60_000)
    engine = PrivacyEngine()
    module, optimizer, loader = engine.make_private_with_epsilon(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=rate, momentum=MOMENTUM),
        data_loader=DataLoader(Rows(data.inputs, data.labels), batch_size=batch, collate_fn=Rows.collate),
        target_epsilon=EPSILON,
        target_delta=DELTA,
        epochs=EPOCHS,
        max_grad_norm=clip,
        sampling=SamplingOptions(population=len(data.labels)),  # 60,000 is the dataset's published size
        noise_generator=seed,
    )
    train_epochs(module, optimizer, loader, EPOCHS)
    return data.accuracy(module), engine.get_epsilon(DELTA)


def main() -> int:
    """Print one line a seed, or one a learning rate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the four .gz files")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--choose", action="store_true", help="try settings on held-out training data")
    asked = parser.parse_args()
    images, labels = read(asked.data, "train")
    inputs = features(images)
    if asked.choose:
        data = held_out(inputs, labels)
        for clip, rate in CHOICES:
            right, epsilon = train(data, clip=clip, rate=rate, seed=0)
            print(f"clip {clip:g}, rate {rate:g}: {right:.2%} on held-out images at epsilon {epsilon:.3f}")
        return 0
    test_images, test_labels = read(asked.data, "t10k")
    data = Split(inputs, labels, features(test_images), test_labels)
    over_seeds(lambda seed: train(data, seed=seed), asked.seeds, f"({EPSILON:g}, {DELTA:g})-DP")
    return 0


if __name__ == "__main__":
    sys.exit(main())
