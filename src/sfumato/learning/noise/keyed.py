"""Independent normal noise from a secret key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sfumato import _check
from sfumato.learning.noise.device_normal import add_normals_on_device
from sfumato.learning.noise.noise import Noise, Slices
from sfumato.learning.noise.noise_key import NoiseKey
from sfumato.numerics.randomness.keyed_normal import add_normals

__all__ = ["KeyedNoise", "SimulatedNoise", "change_entries"]


_PART: Final = 1 << 19
"""So many entries at least are worth a thread of their own."""


def change_entries(tensor: Tensor, change: Callable[[NDArray[Any]], None]) -> None:
    """Let a function change a tensor's entries in place, as a float32 or float64 array of one dimension.

    Parameters
    ----------
    tensor : Tensor
        What numpy can see is not copied; other types, devices and orders in memory go through a copy.
    change : callable
        Takes the entries in the order of their indices.
    """
    detached = tensor.detach()
    shared = detached.device.type == "cpu" and detached.dtype in {torch.float32, torch.float64}
    if shared and detached.is_contiguous() and not detached.is_neg():
        change(detached.view(-1).numpy())
        return
    wide = torch.float64 if detached.dtype is torch.float64 else torch.float32
    copy = detached.to(device="cpu", dtype=wide, memory_format=torch.contiguous_format, copy=True)
    change(copy.view(-1).numpy())
    detached.copy_(copy)


def _add_by_parts(entries: NDArray[Any], drawn: tuple[bytes, tuple[int, int], float, int]) -> None:
    """Add noise with as many threads as torch may use: entries are independent, so the noise is the same."""
    key, stream, stddev, first = drawn
    parts = min(torch.get_num_threads(), entries.size // _PART)
    if parts < 2:
        add_normals(entries, key, stream=stream, start=first, scale=stddev)
        return
    length = -(-entries.size // parts)

    def add(start: int) -> None:
        part = entries[start : start + length]
        add_normals(part, key, stream=stream, start=first + start, scale=stddev)

    with ThreadPoolExecutor(parts) as pool:
        list(pool.map(add, range(0, entries.size, length)))


def _add_there(gradient: Tensor, key: bytes, stream: tuple[int, int], stddev: float, first: int) -> None:
    detached = gradient.detach()
    wide = torch.float64 if detached.dtype is torch.float64 else torch.float32
    flat = detached.to(wide, memory_format=torch.contiguous_format).reshape(-1)
    add_normals_on_device(flat, key, stream, stddev, first)
    if flat.data_ptr() != detached.data_ptr():
        detached.copy_(flat.view(detached.shape))


class _Keyed(Noise):
    def __init__(self, key: NoiseKey) -> None:
        self._key = key
        self._entries = key.subkey("entries")
        self._scalars = key.subkey("scalars")

    @property
    def simulated(self) -> bool:
        """Whether the noise follows from a seed; then it protects nobody."""
        return self._key.simulated

    def _add(self, gradients: Sequence[Tensor], step: int, stddevs: Sequence[float], parts: Slices) -> None:
        for index, (gradient, stddev, part) in enumerate(zip(gradients, stddevs, parts, strict=True)):
            drawn = (self._entries, (step, index), stddev, part.start)
            if gradient.device.type == "cuda":
                _add_there(gradient, *drawn)
            else:
                change_entries(gradient, partial(_add_by_parts, drawn=drawn))

    def scalar(self, *, step: int, stddev: float) -> float:
        """Return the noise of a step's one number beside the gradients."""
        value = np.zeros(1)
        stream = (_check.integer("step", step), 0)
        add_normals(value, self._scalars, stream=stream, scale=_check.non_negative("stddev", stddev))
        return float(value[0])


@final
class KeyedNoise(_Keyed):
    """Independent normal noise, stretched from a 256-bit key by ChaCha20.

    Parameters
    ----------
    key : bytes, optional
        32 secret bytes, used for one run only; fresh from the operating system unless given. Whoever has
        it can take the noise off again: keep it apart from checkpoints that are published.

    Notes
    -----
    Guarantee: each entry's noise is normal, to the accuracy stated in
    `sfumato.numerics.randomness.keyed_normal`, and independent of all others, against whoever cannot
    distinguish ChaCha20 from random bits. Sums are float: ``float_safe`` is False; `GridNoise` is the
    exact alternative.

    On a CUDA device the same numbers are made by torch's operations there (`add_normals_on_device`); for
    other devices they are made on the CPU and copied.

    Examples
    --------
    >>> noise = KeyedNoise()
    >>> sums = [torch.zeros(2, 3), torch.zeros(3)]
    >>> noise.add_(sums, step=0, stddevs=[1.0, 1.0])
    >>> noise.simulated
    False
    """

    def __init__(self, key: bytes | None = None) -> None:
        super().__init__(NoiseKey.of(key))

    @property
    def key(self) -> bytes:
        """The secret key, to be sealed with a run that is to be resumed."""
        return self._key.secret

    def __repr__(self) -> str:
        return "KeyedNoise(key=...)"


@final
class SimulatedNoise(_Keyed):
    """The same noise from a seed: for simulation and tests, never for real data.

    Parameters
    ----------
    seed : int
        Non-negative.

    Examples
    --------
    >>> SimulatedNoise(1).simulated
    True
    """

    def __init__(self, seed: int) -> None:
        self.seed = _check.integer("seed", seed)
        super().__init__(NoiseKey.of(None, self.seed))

    def __repr__(self) -> str:
        return f"SimulatedNoise({self.seed})"
