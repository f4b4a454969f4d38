"""The models of the learning benchmark, and the measure of a step against the plain one, interleaved.

It lies beside the scripts, so that each finds it from inside of its own environment; torch is all it may use.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

Methods = Mapping[str, Callable[[str], Callable[[], None]]]
"""Name to what makes the step of a model that is named."""


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, 2),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.Tanh(),
        nn.Linear(32, 10),
    )


class Transformer(nn.Module):
    """An encoder of 4 layers over 64 tokens, and a class from their mean."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(1000, 128)
        layer = nn.TransformerEncoderLayer(128, 4, 512, 0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 4, norm=nn.LayerNorm(128), enable_nested_tensor=False)
        self.head = nn.Linear(128, 10)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.layers(self.table(tokens)).mean(1))


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.first_norm = nn.GroupNorm(8, outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.second_norm = nn.GroupNorm(8, outputs)
        same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        inner = torch.relu(self.first_norm(self.first(images)))
        return torch.relu(self.second_norm(self.second(inner)) + self.shortcut(images))


def resnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, 1, 1, bias=False),
        nn.GroupNorm(8, 32),
        nn.ReLU(),
        Block(32, 32, 1),
        Block(32, 64, 2),
        Block(64, 128, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


class GPT2(nn.Module):
    """The shape of GPT-2 with 124 million parameters, head and embedding tied."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
        self.layers, self.norm = _encoder(768, 12), nn.LayerNorm(768)
        self.head = nn.Linear(768, 50257, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        places = torch.arange(length).expand(len(tokens), length)
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        inner = self.layers(self.tokens(tokens) + self.positions(places), mask=mask, is_causal=True)
        return self.head(self.norm(inner)).transpose(1, 2)


class ViT(nn.Module):
    """The shape of ViT-S/16: images of 224 by 224 in 196 patches, and a class from a token of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 384, 16, 16)
        self.token, self.positions = nn.Embedding(1, 384), nn.Embedding(197, 384)
        self.layers, self.norm, self.head = _encoder(384, 6), nn.LayerNorm(384), nn.Linear(384, 1000)

    def forward(self, images: Tensor) -> Tensor:
        size = len(images)
        patches = self.patches(images).flatten(2).transpose(1, 2)
        token = self.token(torch.zeros(size, 1, dtype=torch.long))
        places = self.positions(torch.arange(197).expand(size, 197))
        return self.head(self.norm(self.layers(torch.cat([token, patches], 1) + places)[:, 0]))


def _encoder(width: int, heads: int) -> nn.Module:
    layer = nn.TransformerEncoderLayer(
        width, heads, 4 * width, 0.0, F.gelu, batch_first=True, norm_first=True
    )
    return nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)


MODELS: dict[str, tuple[Callable[[], nn.Module], int, Callable[[int], Tensor], int]] = {
    "mlp": (mlp, 512, lambda n: torch.randn(n, 784), 30),
    "transformer": (Transformer, 64, lambda n: torch.randint(1000, (n, 64)), 8),
    "cnn": (cnn, 256, lambda n: torch.randn(n, 1, 28, 28), 30),
    "resnet": (resnet, 64, lambda n: torch.randn(n, 3, 32, 32), 8),
    "gpt2": (GPT2, 8, lambda n: torch.randint(50257, (n, 128)), 3),
    "vit": (ViT, 8, lambda n: torch.randn(n, 3, 224, 224), 3),
}
"""Name to the maker, the batch size, the maker of a batch, and the steps to take the median of."""


def setting(name: str) -> tuple[nn.Module, Tensor, Tensor]:
    """Return the model, the inputs and the classes, always the same; of texts, a class for each token."""
    torch.manual_seed(0)
    make, size, batch, _ = MODELS[name]
    inputs = batch(size)
    return make(), inputs, torch.randint(10, inputs.shape if name == "gpt2" else (size,))


def plain_step(name: str) -> Callable[[], None]:
    """Return a step of SGD that protects nobody."""
    model, inputs, classes = setting(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), classes).backward()
        optimizer.step()

    return step


def interleaved(steps: Mapping[str, Callable[[], None]], rounds: int) -> dict[str, dict[str, float]]:
    """Return the median CPU milliseconds of each step, taken in turns, and seconds of its first."""
    found: dict[str, list[float]] = {name: [] for name in steps}
    first = {}
    for name, step in steps.items():
        start = time.process_time()
        step()
        first[name] = time.process_time() - start
    for _ in range(rounds):
        for name, step in steps.items():
            start = time.process_time()
            step()
            found[name].append(time.process_time() - start)
    return {
        name: {"ms": 1000 * statistics.median(times), "first": first[name]} for name, times in found.items()
    }


def growth(step: Callable[[], None]) -> float:
    """Return by how many MiB the process grew at most in three steps, over what the model took."""
    Path("/proc/self/clear_refs").write_text("5")
    before = held("VmRSS")
    for _ in range(3):
        step()
    return (held("VmHWM") - before) / 1024


def held(what: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what + ":"))


def report(**sets: Methods) -> None:
    """Print, as JSON, the times of a set of methods on one model, in turns; or the memory of one method."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--set", choices=sets, default=next(iter(sets)))
    parser.add_argument("--rounds", type=int, help="steps to take the median of")
    parser.add_argument("--growth", metavar="METHOD", help="by how many MiB this method's process grows")
    options = parser.parse_args()
    torch.set_num_threads(1)
    methods = sets[options.set]
    if options.growth:
        print(json.dumps(growth(methods[options.growth](options.model))))
        return
    steps = {method: make(options.model) for method, make in methods.items()}
    print(json.dumps(interleaved(steps, options.rounds or MODELS[options.model][3])))
