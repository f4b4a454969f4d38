"""Fashion-MNIST at epsilon 2.7: a small convolutional network of tanh units, trained by DP-SGD from nothing.

Run ``python examples/fashion_cnn.py`` (some seven minutes a seed on one core). With ``--choose`` learning
rates are tried: trained on the first 50,000 training images, tested on the other 10,000. That choice looked
at the data and is not in epsilon; `sfumato.learning.tune` would charge for it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch
from fashion_mnist import FOLDER, Rows, Split, held_out, over_seeds, read, train_epochs
from torch import Tensor, nn
from torch.utils.data import DataLoader

from sfumato.learning import PrivacyEngine, SamplingOptions

EPSILON, DELTA = 2.7, 1e-5
BATCH, STEPS, PART, CLIP, MOMENTUM, RATE = 2048, 1000, 512, 0.1, 0.9, 3.0
CHOICES = (3.0, 6.0)
MEAN, DEVIATION = 0.2860, 0.3530
"""Of the pixels of the published data set, as everybody uses them: public."""


def network() -> nn.Module:
    """Return the network of Papernot et al. (2021), "Tempered sigmoid activations": 26,010 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, stride=2, padding=2),
        nn.Tanh(),
        nn.MaxPool2d(2, stride=1),
        nn.Conv2d(16, 32, 4, stride=2),
        nn.Tanh(),
        nn.MaxPool2d(2, stride=1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.Tanh(),
        nn.Linear(32, 10),
    )


def pixels(images: Tensor) -> Tensor:
    """Return images as the network takes them."""
    return (images[:, None] - MEAN) / DEVIATION


def train(data: Split, *, rate: float = RATE, seed: int | None) -> tuple[float, float]:
    """Train once; return the accuracy and the epsilon. A seed simulates, so that a run can be repeated."""
    torch.manual_seed(seed or 0)
    model = network()
    batch = round(BATCH * len(data.labels) / 60_000)
    engine = PrivacyEngine()
    module, optimizer, loader = engine.make_private_with_epsilon(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=rate, momentum=MOMENTUM),
        data_loader=DataLoader(Rows(data.inputs, data.labels), batch_size=batch, collate_fn=Rows.collate),
        target_epsilon=EPSILON,
        target_delta=DELTA,
        max_grad_norm=CLIP,
        sampling=SamplingOptions(
            population=len(data.labels),  # 60,000 is the dataset's published size
            steps=STEPS,
            max_physical_batch_size=PART,
        ),
        noise_generator=seed,
    )
    epochs = -(-STEPS // len(loader))  # the last epoch ends with the run
    train_epochs(module, optimizer, loader, epochs)
    return data.accuracy(module), engine.get_epsilon(DELTA)


def main() -> int:
    """Print one line a seed, or one a learning rate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=FOLDER, help="folder of the four .gz files")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--choose", action="store_true", help="try learning rates on held-out training data")
    asked = parser.parse_args()
    images, labels = read(asked.data, "train")
    if asked.choose:
        data = held_out(pixels(images), labels)
        for rate in CHOICES:
            right, epsilon = train(data, rate=rate, seed=0)
            print(f"rate {rate:g}: {right:.2%} on held-out images at epsilon {epsilon:.3f}", flush=True)
        return 0
    test_images, test_labels = read(asked.data, "t10k")
    data = Split(pixels(images), labels, pixels(test_images), test_labels)
    over_seeds(lambda seed: train(data, seed=seed), asked.seeds, f"({EPSILON:g}, {DELTA:g})-DP")
    return 0


if __name__ == "__main__":
    sys.exit(main())
