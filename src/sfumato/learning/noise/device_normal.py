"""Keyed normal numbers by torch's own operations: the same bits, made where the tensor is."""

from __future__ import annotations

from typing import Final

import numpy as np
import torch
from torch import Tensor

__all__ = ["add_normals_on_device"]

_ROW: Final = 16
_GROUP: Final = 128
_PAIRS: Final = 64
_MASK: Final = 0xFFFFFFFF
_CONSTANTS: Final = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
_PART: Final = 1 << 13
_EIGHTH: Final = 0.7853981633974483 * 2.0**-61
_SINE: Final = (1307674368000, 6227020800, 39916800, 362880, 5040, 120, 6)
_COSINE: Final = (87178291200, 479001600, 3628800, 40320, 720, 24, 2)


def add_normals_on_device(
    out: Tensor, key: bytes, stream: tuple[int, int], scale: float, first: int = 0
) -> None:
    """Add ``scale`` times a stream's normal numbers to a tensor, in place, on its device.

    Parameters
    ----------
    out : Tensor of float32 or float64
        Of one dimension.
    key : bytes
        32 bytes.
    stream : pair of int
        As in `sfumato.numerics.randomness.keyed_normal.add_normals`.
    scale : float
    first : int
        The position whose number is added to the first entry.

    Notes
    -----
    The operations are those of the compiled kernel in the same order, each rounded by itself as IEEE 754
    says: on a device whose doubles do so, the same bits come out. Tested on the CPU.
    """
    skipped = first % _GROUP
    for start in range(-skipped, out.numel(), _PART * _GROUP):
        part = out[max(start, 0) : start + _PART * _GROUP]
        before = max(-start, 0)
        groups = -(-(before + part.numel()) // _GROUP)
        words = _words(key, stream, (first + start) // _GROUP, groups, out.device)
        normals = _transform(words[:, :_PAIRS], words[:, _PAIRS:]).reshape(-1)
        part.copy_(part.double() + normals[before : before + part.numel()] * scale)


def _int32(values: Tensor) -> Tensor:
    """Return integers of which the lowest 32 bits count, as those bits."""
    return (((values + (1 << 31)) & _MASK) - (1 << 31)).to(torch.int32)


def _turned(x: Tensor, n: int) -> Tensor:
    # A shift to the right repeats the sign: only the lowest n bits are of the word.
    return (x << n) | ((x >> (32 - n)) & ((1 << n) - 1))


def _quarters(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Four of ChaCha's quarter rounds side by side."""
    a = a + b
    d = _turned(d ^ a, 16)
    c = c + d
    b = _turned(b ^ c, 12)
    a = a + b
    d = _turned(d ^ a, 8)
    c = c + d
    b = _turned(b ^ c, 7)
    return a, b, c, d


def _words(key: bytes, stream: tuple[int, int], first: int, groups: int, device: torch.device) -> Tensor:
    """Return the words of some groups, shape (groups, 128, 2): the lower halves, then the upper ones."""
    blocks = torch.arange(first * _ROW, (first + groups) * _ROW, device=device)
    fixed = [int.from_bytes(key[i : i + 4], "little") for i in range(0, 32, 4)]
    whole = torch.tensor([*_CONSTANTS, *fixed, 0, 0, stream[1], stream[0]], device=device)
    state = _int32(whole)[:, None].repeat(1, len(blocks))
    state[12], state[13] = _int32(blocks), _int32(blocks >> 32)
    a, b, c, d = (state[4 * i : 4 * i + 4] for i in range(4))
    for _ in range(10):
        a, b, c, d = _quarters(a, b, c, d)
        a, b, c, d = _quarters(a, b.roll(-1, 0), c.roll(-2, 0), d.roll(-3, 0))
        b, c, d = b.roll(1, 0), c.roll(2, 0), d.roll(3, 0)
    words = (torch.cat([a, b, c, d]) + state).reshape(16, groups, _ROW)
    return words.transpose(0, 1).reshape(groups, _GROUP, 2).long() & _MASK


def _half_above(low: Tensor, high: Tensor) -> Tensor:
    return high.double() * 2.0**32 + (low.double() + 0.5)


def _series(q: Tensor, divisors: tuple[int, ...]) -> Tensor:
    term = 1.0 / divisors[1] - q * (1.0 / divisors[0])
    for divisor in divisors[2:]:
        term = 1.0 / divisor - q * term
    return term


def _root(x: Tensor) -> Tensor:
    """Return correctly rounded square roots: on the CPU, torch's may come from a library whose are not."""
    return torch.from_numpy(np.sqrt(x.numpy())) if x.device.type == "cpu" else x.sqrt()


def _radius(low: Tensor, high: Tensor) -> Tensor:
    near_one = (high >> 30) == 3
    d = _half_above(torch.where(near_one, low ^ _MASK, low), torch.where(near_one, high ^ _MASK, high))
    bits = d.view(torch.int64)
    e = (bits - 0x3FD6A09E667F3BCD) >> 52
    below = (bits - (e << 52) + (1 << 52)).view(torch.float64) - 1.0
    f = torch.where(near_one, d * -(2.0**-64), below)
    k = torch.where(near_one, 0.0, 65.0 - e.double())
    s = f / (f + 2.0)
    z = s * s
    p = z * (1.0 / 17) + 1.0 / 15
    for divisor in (13, 11, 9, 7, 5, 3, 1):
        p = z * p + 1.0 / divisor
    return _root(k * 1.3862943611198906 - (s * 4.0) * p)


def _transform(radii: Tensor, directions: Tensor) -> Tensor:
    """Return the normal numbers of groups' words, shape (groups, 128)."""
    r = _radius(radii[..., 0], radii[..., 1])
    low, high = directions[..., 0], directions[..., 1]
    t = _half_above(low, high & 0x1FFFFFFF) * _EIGHTH
    q = t * t
    sine = t - (t * q) * _series(q, _SINE)
    cosine = 1.0 - q * _series(q, _COSINE)
    swap = (high >> 29 & 1) == 1
    x, y = torch.where(swap, sine, cosine), torch.where(swap, cosine, sine)
    signs = [1.0 - 2.0 * (high >> index & 1).double() for index in (30, 31)]
    return torch.cat([r * (x * signs[0]), r * (y * signs[1])], dim=1)
