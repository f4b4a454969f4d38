"""Keyed noise: a function of key, step, parameter and place, in any kind of tensor."""

from __future__ import annotations

import pytest

from sfumato.errors import ParameterError
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import torch

    from sfumato.learning.noise import keyed
    from sfumato.learning.noise.keyed import KeyedNoise, SimulatedNoise


KEY = bytes(range(32))


def drawn(noise: KeyedNoise | SimulatedNoise, *sums: torch.Tensor, step: int = 0) -> list[torch.Tensor]:
    noise.add_(sums, step=step, stddevs=[1.0] * len(sums))
    return list(sums)


def test_the_same_call_gives_the_same_noise_and_no_other_does() -> None:
    first = drawn(KeyedNoise(KEY), torch.zeros(40), torch.zeros(40))
    again = drawn(KeyedNoise(KEY), torch.zeros(40), torch.zeros(40))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    others = [
        first[1],
        drawn(KeyedNoise(KEY), torch.zeros(40), step=1)[0],
        drawn(KeyedNoise(KEY[::-1]), torch.zeros(40))[0],
        drawn(KeyedNoise(), torch.zeros(40))[0],
    ]
    for other in others:
        assert not (other[None] == first[0][:, None]).any()


def test_noise_is_added_and_scaled() -> None:
    plain = drawn(KeyedNoise(KEY), torch.zeros(5, 3, dtype=torch.float64))[0]
    moved = torch.full((5, 3), 7.0, dtype=torch.float64)
    KeyedNoise(KEY).add_([moved], step=0, stddevs=[2.5])
    assert torch.allclose(moved, 7 + 2.5 * plain, rtol=1e-15)


@cases("dtype", lambda: [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_noise_follows_the_entries_in_whatever_order_memory_has_them(dtype: torch.dtype) -> None:
    plain = drawn(KeyedNoise(KEY), torch.zeros(6, 4))[0]
    scattered = torch.zeros(9, 4, 6, dtype=dtype)[3].t()
    assert not scattered.is_contiguous()
    drawn(KeyedNoise(KEY), scattered)
    assert torch.allclose(scattered.float(), plain, atol=0.02)
    leaf = torch.nn.Parameter(torch.zeros(6, 4, dtype=dtype))
    drawn(KeyedNoise(KEY), leaf)
    assert torch.allclose(leaf.detach().float(), plain, atol=0.02)


def test_empty_and_single_entries() -> None:
    noisy = drawn(KeyedNoise(KEY), torch.zeros(0, 3), torch.zeros(()), torch.zeros(1))
    assert noisy[0].shape == (0, 3)
    assert noisy[1] != 0
    assert noisy[1] != noisy[2]


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    one = drawn(KeyedNoise(KEY), torch.ones(100_003))[0]
    monkeypatch.setattr(keyed, "_PART", 1000)
    for threads in (2, 3, 7):
        monkeypatch.setattr(torch, "get_num_threads", lambda count=threads: count)
        assert torch.equal(drawn(KeyedNoise(KEY), torch.ones(100_003))[0], one)


def test_a_seed_marks_simulation_and_a_key_stays_unseen() -> None:
    assert SimulatedNoise(3).simulated
    assert not KeyedNoise().simulated
    assert not KeyedNoise().float_safe
    assert KeyedNoise().key != KeyedNoise().key
    assert repr(KeyedNoise(KEY)) == "KeyedNoise(key=...)"
    assert KeyedNoise(KEY).scalar(step=2, stddev=1.0) == KeyedNoise(KEY).scalar(step=2, stddev=1.0)
    assert KeyedNoise(KEY).scalar(step=2, stddev=0.0) == 0.0


def test_bad_parameters_are_told() -> None:
    noise = KeyedNoise()
    with pytest.raises(ParameterError, match="key must be 32 bytes"):
        KeyedNoise(b"short")
    with pytest.raises(
        ParameterError, match="stddevs must have one entry for each of the 1 gradients, but there are 2"
    ):
        noise.add_([torch.zeros(3)], step=0, stddevs=[1.0, 1.0])
    with pytest.raises(ParameterError, match="gradients must be dense tensors of floats"):
        noise.add_([torch.zeros(3, dtype=torch.int64)], step=0, stddevs=[1.0])
    with pytest.raises(ParameterError, match="gradients must be dense tensors of floats"):
        noise.add_([torch.zeros(3).to_sparse()], step=0, stddevs=[1.0])
    for step in (-1, 2**31):
        with pytest.raises(ParameterError, match="step must be"):
            noise.add_([torch.zeros(3)], step=step, stddevs=[1.0])
    with pytest.raises(ParameterError, match="stddevs must be non-negative"):
        noise.add_([torch.zeros(3)], step=0, stddevs=[-1.0])
