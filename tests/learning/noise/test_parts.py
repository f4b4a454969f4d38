"""Noise for parts of parameters: cut anywhere, it is the noise of the whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sfumato.errors import ParameterError
from sfumato.mechanisms.factorization.strategies.banded import BandedToeplitz
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import torch

    from sfumato.learning.noise import device_normal
    from sfumato.learning.noise.correlated import CorrelatedNoise
    from sfumato.learning.noise.device_normal import add_normals_on_device
    from sfumato.learning.noise.grid import GridNoise
    from sfumato.learning.noise.keyed import KeyedNoise
    from sfumato.learning.noise.noise import Noise, ParameterSlice


KEY = bytes(range(32))
SIZES = (3 * 517, 400)
MAKERS: dict[str, Callable[[], Noise]] = {
    "keyed": lambda: KeyedNoise(KEY),
    "grid": lambda: GridNoise(KEY),
    "correlated": lambda: CorrelatedNoise(BandedToeplitz(steps=5, bands=[1.0, 0.5]), key=KEY),
}


@cases("kind", MAKERS)
@cases("cut", [(0, 0), (1, 399), (517, 200), (129, 128), (3 * 517, 400)])
def test_parts_have_the_noise_of_the_whole(kind: str, cut: tuple[int, int]) -> None:
    stddevs = [0.5, 3.0]
    wholes = [torch.linspace(-1, 1, size) for size in SIZES]
    cuts = [tensor.clone().split([at, len(tensor) - at]) for tensor, at in zip(wholes, cut, strict=True)]
    whole, first, second = (MAKERS[kind]() for _ in range(3))
    for step in range(3):
        whole.add_(wholes, step=step, stddevs=stddevs)
        for noise, side in ((first, 0), (second, 1)):
            pieces = [pair[side] for pair in cuts]
            parts = [ParameterSlice(at if side else 0, size) for at, size in zip(cut, SIZES, strict=True)]
            noise.add_(pieces, step=step, stddevs=stddevs, parts=parts)
    for tensor, pair in zip(wholes, cuts, strict=True):
        assert torch.equal(tensor, torch.cat(pair))


@pytest.mark.parametrize("first", [0, 1, 127, 128, 1000])
def test_a_device_draws_from_any_place_on(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_normal, "_PART", 2)
    whole = torch.zeros(3000, dtype=torch.float64)
    add_normals_on_device(whole, KEY, (1, 2), 1.5)
    part = torch.zeros(1500, dtype=torch.float64)
    add_normals_on_device(part, KEY, (1, 2), 1.5, first)
    assert torch.equal(part, whole[first : first + 1500])


def test_parts_that_lie_nowhere_are_refused() -> None:
    for parts in ([ParameterSlice(0, 3)], [ParameterSlice(1, 4)], [ParameterSlice(-1, 9)], []):
        with pytest.raises(ParameterError, match="parts must"):
            KeyedNoise(KEY).add_([torch.zeros(4)], step=0, stddevs=[1.0], parts=parts)
