"""Per-example gradients of two-dimensional convolutions as products of matrices.

Which way is taken depends on shapes only, so that the same step gives the same floats again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

__all__ = ["autocorrelated", "by_patches", "suited", "turned"]

_SMALL_MAP = 200
"""Up to so many positions in the output, copying patches out costs less than a grouped convolution."""


class _Form(Protocol):
    stride: list[int]
    padding: list[int]
    dilation: list[int]
    transposed: bool
    groups: int


def _plain(form: _Form, shape: Sequence[int]) -> bool:
    return len(shape) == 4 and not form.transposed and form.groups == 1 and set(form.dilation) == {1}


def suited(form: _Form, shape: Sequence[int], gradients: Tensor) -> bool:
    """Return whether `by_patches` can do a convolution, and fast."""
    if not _plain(form, shape):
        return False
    pointwise = shape[2] * shape[3] == 1
    return pointwise or gradients.shape[2] * gradients.shape[3] <= _SMALL_MAP


def turned(shape: Sequence[int]) -> bool:
    """Return whether `by_patches` has the outputs last: products are faster with the longer side in rows."""
    channels_out, channels_in, _, width = shape
    return width * channels_in < channels_out


def by_patches(form: _Form, values: Tensor, gradients: Tensor, shape: Sequence[int], out: Tensor) -> Tensor:
    """Return per-example gradients, apart by the rows of the kernel.

    Only what the kernel's columns see is copied out, side by side; for each of its rows, the positions of the
    output then see consecutive lines of that copy.

    Parameters
    ----------
    out : Tensor of shape (kernel rows, examples, outputs, kernel columns * inputs)
        Takes the result; with the last two dimensions in turn if `turned`.
    """
    height, width = shape[2:]
    high, wide = gradients.shape[2:]
    down, right = form.stride
    flat, swapped = _flat(gradients), turned(shape)

    def product(windows: Tensor, row: int) -> None:
        pair = (windows.transpose(1, 2), flat.transpose(1, 2)) if swapped else (flat, windows)
        torch.bmm(*pair, out=out[row])

    if height * width == 1 and not any(form.padding):
        pixels = values[:, :, : (high - 1) * down + 1 : down, : (wide - 1) * right + 1 : right]
        product(_flat(pixels).transpose(1, 2), 0)
        return out
    lines = _lines(form, values, (height, width), (high, wide))
    for row in range(height):
        start = row // down * wide
        product(lines[:, row % down, start : start + high * wide], row)
    return out


def _lines(form: _Form, values: Tensor, kernel: Sequence[int], positions: Sequence[int]) -> Tensor:
    """Return what the kernel's columns see from each line and position, by phases of the stride.

    The shape is (examples, phases, lines * positions, kernel columns * inputs).
    """
    (down, right), (top, left), (height, width) = form.stride, form.padding, kernel
    each = positions[0] + (height - 1) // down
    below = max(0, down * each - values.shape[2] - top)
    padded = values.permute(0, 2, 3, 1)
    if top or left or below:
        padded = F.pad(padded, (0, 0, left, left, top, max(top, below)))
    padded = padded.contiguous()
    example, line, pixel, _ = padded.stride()
    count, columns = len(values), width * values.shape[1]
    windows = (count, down, each, positions[1], columns)
    copied = padded.as_strided(windows, (example, line, line * down, pixel * right, 1)).contiguous()
    return copied.view(count, down, each * positions[1], columns)


def autocorrelated(
    form: _Form, values: Tensor, gradients: Tensor, shape: Sequence[int]
) -> tuple[Tensor, Tensor] | None:
    """Return squared norms and a bound of them, from inner products of pixels; None where that costs more.

    The inner product of two patches is the sum, over the positions in the kernel, of inner products of
    pixels, and those are found once for all positions.
    """
    if not _plain(form, shape) or form.stride != [1, 1]:
        return None
    count, (channels_out, channels_in, height, width) = len(values), shape
    high, wide = gradients.shape[2:]
    positions = high * wide
    padded_positions = (high + height - 1) * (wide + width - 1)
    cost = padded_positions**2 * channels_in + positions**2 * (channels_out + height * width)
    if 3 * cost > positions * math.prod(shape):
        return None
    top, left = form.padding
    padded = F.pad(values, (left, left, top, top))
    pixels = padded.flatten(2)
    shown = (count, *padded.shape[2:], *padded.shape[2:])
    products = (pixels.transpose(1, 2) @ pixels).view(shown)
    patches: Any = 0
    for i in range(height):
        for j in range(width):
            rows, columns = slice(i, i + high), slice(j, j + wide)
            patches = patches + products[:, rows, columns, rows, columns]
    flat = _flat(gradients)
    outward = flat.transpose(1, 2) @ flat
    gram = patches.reshape(count, positions, positions)
    reach = (_sizes(gram) * _sizes(outward)).sum(1).square()
    return gram.mul_(outward).sum((1, 2)), reach


def _flat(maps: Tensor) -> Tensor:
    """Return shape (examples, channels, positions), as a view whichever way the channels are stored."""
    if maps.is_contiguous(memory_format=torch.channels_last):
        return maps.permute(0, 2, 3, 1).flatten(1, 2).transpose(1, 2)
    return maps.flatten(2)


def _sizes(gram: Tensor) -> Tensor:
    """Return the norms that the diagonal holds the squares of."""
    return torch.diagonal(gram, dim1=1, dim2=2).clamp(min=0).sqrt()
