"""Normal numbers by torch's operations: bit for bit those of the compiled kernel."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.numerics.randomness.keyed_normal import add_normals
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import torch

    from sfumato.learning.noise import device_normal, keyed
    from sfumato.learning.noise.device_normal import add_normals_on_device


KEY = bytes(range(1, 33))
if run_time(__name__):
    DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@cases("where", lambda: DEVICES)
@cases("dtype", lambda: [torch.float32, torch.float64])
@cases("stream", [(0, 0), (7, 11), (2**31 - 1, 2**32 - 1)])
def test_the_bits_are_those_of_the_kernel(stream: tuple[int, int], dtype: torch.dtype, where: str) -> None:
    before = torch.tensor(np.random.default_rng(1).normal(size=60_003), dtype=dtype)
    ours, theirs = before.to(where, copy=True), before.clone()
    add_normals_on_device(ours, KEY, stream, 0.37)
    add_normals(theirs.numpy(), KEY, stream=stream, scale=0.37)
    assert torch.equal(ours.cpu(), theirs)


@cases("dtype", lambda: [torch.float32, torch.float64, torch.bfloat16])
def test_tensors_in_any_order_get_the_noise_of_their_entries(dtype: torch.dtype) -> None:
    for value in (
        torch.ones(6, 4, dtype=dtype),
        torch.ones(4, 6, dtype=dtype).t(),
        torch.ones((), dtype=dtype),
    ):
        theirs = value.clone(memory_format=torch.preserve_format)
        keyed._add_there(value, KEY, (1, 2), 0.5, 0)

        def add(entries: np.ndarray) -> None:
            add_normals(entries, KEY, stream=(1, 2), scale=0.5)

        keyed.change_entries(theirs, add)
        assert torch.equal(value, theirs)
        assert (value != 1).any()


def test_long_tensors_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_normal, "_PART", 3)
    ours, theirs = torch.zeros(1000, dtype=torch.float64), np.zeros(1000)
    add_normals_on_device(ours, KEY, (1, 2), 1.0)
    add_normals(theirs, KEY, stream=(1, 2))
    assert np.array_equal(ours.numpy(), theirs)
    add_normals_on_device(torch.zeros(0), KEY, (1, 2), 1.0)


def test_counters_beyond_32_bits_and_words_with_the_top_bit() -> None:
    words = device_normal._words(KEY, (2**32 - 1, 2**31), 2**40, 2, torch.device("cpu"))
    first = np.zeros(256)
    add_normals(first, KEY, stream=(2**32 - 1, 2**31), start=2**40 * 128)
    assert np.array_equal(device_normal._transform(words[:, :64], words[:, 64:]).reshape(-1).numpy(), first)
