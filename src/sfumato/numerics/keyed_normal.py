"""Normal numbers that are a function of a key and their place, from ChaCha20."""

from __future__ import annotations

from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from numpy.typing import NDArray

from sfumato import _check

__all__ = ["add_normals"]

_BLOCKS = 16
_WORDS = 16


def _uniforms(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    return (words.astype(np.float64) + 0.5) * 2.0**-64


def _normals(key: bytes, stream: tuple[int, int], start: int, count: int) -> NDArray[np.float64]:
    group = _BLOCKS * _WORDS // 2
    first, last = start // group, -(-(start + count) // group)
    nonce = (first * _BLOCKS).to_bytes(8, "little")
    nonce += b"".join(part.to_bytes(4, "little") for part in stream[::-1])
    cipher = Cipher(algorithms.ChaCha20(key, nonce), mode=None).encryptor()
    raw = np.frombuffer(cipher.update(bytes((last - first) * _BLOCKS * 64)), "<u4")
    words = raw.reshape(-1, _BLOCKS, _WORDS).transpose(0, 2, 1).copy().view("<u8")
    radius = np.sqrt(-2 * np.log(_uniforms(words[:, 0::2])))
    turn = 2 * np.pi * _uniforms(words[:, 1::2])
    both = np.concatenate([radius * np.cos(turn), radius * np.sin(turn)], axis=2)
    return both.reshape(-1)[start - first * group :][:count]


def add_normals(
    out: NDArray[Any], key: bytes, *, stream: tuple[int, int] = (0, 0), start: int = 0, scale: float = 1.0
) -> None:
    """Add ``scale`` times normal numbers to an array, in place."""
    if out.ndim != 1 or out.dtype not in (np.float32, np.float64):
        _check.refuse("out", "be a float32 or float64 array of one dimension", out.dtype)
    out += (scale * _normals(key, stream, start, out.size)).astype(out.dtype)
