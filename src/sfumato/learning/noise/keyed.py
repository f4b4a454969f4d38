"""Independent normal noise from a secret key."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import final

import numpy as np
import torch
from torch import Tensor

from sfumato import _check
from sfumato.learning.noise.noise import Noise
from sfumato.numerics.keyed_normal import add_normals

__all__ = ["KeyedNoise", "SimulatedNoise", "subkey"]

_KEY_BYTES = 32


def subkey(key: bytes, purpose: str) -> bytes:
    """Return a key for one purpose: SHA-256 of the purpose and the key, each key used for this only."""
    return hashlib.sha256(b"sfumato learning noise: " + purpose.encode() + b"\0" + key).digest()


def add_keyed(gradient: Tensor, key: bytes, stream: tuple[int, int], stddev: float) -> None:
    """Add noise in place: straight into memory where numpy can see it, through a copy elsewhere."""
    seen = gradient.detach()
    plain = (
        seen.device.type == "cpu" and seen.dtype in {torch.float32, torch.float64} and seen.is_contiguous()
    )
    if plain and not seen.is_neg() and not seen.is_conj():
        add_normals(seen.view(-1).numpy(), key, stream=stream, scale=stddev)
        return
    wide = torch.float64 if seen.dtype is torch.float64 else torch.float32
    copy = seen.to(device="cpu", dtype=wide, memory_format=torch.contiguous_format, copy=True)
    add_normals(copy.view(-1).numpy(), key, stream=stream, scale=stddev)
    gradient.copy_(copy)


class _Keyed(Noise):
    def __init__(self, key: bytes) -> None:
        self._key = key
        self._entries = subkey(key, "entries")
        self._scalars = subkey(key, "scalars")

    def _add(self, gradients: Sequence[Tensor], step: int, stddevs: Sequence[float]) -> None:
        for place, (gradient, stddev) in enumerate(zip(gradients, stddevs, strict=True)):
            add_keyed(gradient, self._entries, (step, place), stddev)

    def scalar(self, *, step: int, stddev: float) -> float:
        """Return the noise of a step's one number beside the gradients."""
        _check.integer("step", step)
        value = np.zeros(1)
        add_normals(value, self._scalars, stream=(step, 0), scale=_check.non_negative("stddev", stddev))
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
    Guarantee: each entry's noise is normal, to the accuracy stated in `sfumato.numerics.keyed_normal`,
    and independent of all others, against whoever cannot tell ChaCha20 from random bits. Sums are float:
    ``float_safe`` is False; `GridNoise` is the exact alternative.

    Examples
    --------
    >>> noise = KeyedNoise()
    >>> sums = [torch.zeros(2, 3), torch.zeros(3)]
    >>> noise.add_(sums, step=0, stddevs=[1.0, 1.0])
    >>> noise.simulated
    False
    """

    def __init__(self, key: bytes | None = None) -> None:
        secret: object = os.urandom(_KEY_BYTES) if key is None else key
        if not isinstance(secret, bytes) or len(secret) != _KEY_BYTES:
            _check.refuse("key", f"be {_KEY_BYTES} bytes", type(key).__name__, "leave it out for a fresh one")
        super().__init__(secret)

    @property
    def key(self) -> bytes:
        """The secret key, to be sealed with a run that is to be resumed."""
        return self._key

    @property
    def simulated(self) -> bool:
        """False: this noise protects."""
        return False

    def __repr__(self) -> str:
        return "KeyedNoise(key=...)"


@final
class SimulatedNoise(_Keyed):
    """The same noise from a seed: for simulation and tests, never for real data.

    Parameters
    ----------
    seed : int
        Non-negative.
    """

    def __init__(self, seed: int) -> None:
        self.seed = _check.integer("seed", seed)
        super().__init__(subkey(str(self.seed).encode(), "simulation"))

    @property
    def simulated(self) -> bool:
        """True: whatever is drawn from here protects nobody."""
        return True

    def __repr__(self) -> str:
        return f"SimulatedNoise({self.seed})"
