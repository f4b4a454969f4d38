"""Random vectors that follow from a seed, alike on every device and on the server."""

from __future__ import annotations

from functools import cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["PIECE", "UNIT", "gaussians", "normal_table", "on_sphere", "quantiles"]

PIECE: Final = 1 << 18
"""Numbers that are made at once: they stay in the processor's cache."""
UNIT: Final = 1 << 12
"""Vectors are whole multiples of one part in this, so that sums of them are exact."""
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the output function of SplitMix64 (Steele, Lea, Flood 2014) of words."""
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ words >> np.uint64(31))


def _words(seeds: NDArray[np.uint64], positions: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the words at some positions of the generator that each seed starts, alike in shape."""
    started = _mixed(np.asarray(seeds + _STEP, np.uint64))
    return _mixed((started[:, None, None] + positions * _STEP).astype(np.uint64, copy=False))


def gaussians(seeds: NDArray[np.uint64], numbers: NDArray[np.int64], dimension: int) -> NDArray[np.float64]:
    """Return normal vectors in units of one part in `UNIT`, not rounded yet.

    Parameters
    ----------
    seeds : array, shape (reports,)
    numbers : array, shape (reports, some)
        Which of the seed's vectors.
    dimension : int

    Returns
    -------
    array, shape (reports, some, dimension)

    Notes
    -----
    The words are those of SplitMix64 started at the seed's mix, and pairs of them become pairs of normal
    numbers (Box, Muller 1958). That they pass for independent is what estimates rest on, and nothing else.
    """
    half = -(-dimension // 2)
    positions = (numbers.astype(np.uint64) * np.uint64(2 * half))[:, :, None] + np.arange(
        1, 2 * half + 1, dtype=np.uint64
    )
    words = _words(seeds, np.asarray(positions, np.uint64)) >> np.uint64(11)
    length = np.sqrt(-2.0 * np.log((words[:, :, :half] + np.uint64(1)) * 2.0**-53)) * UNIT
    angle = words[:, :, half:] * (2.0**-52 * np.pi)
    return np.concatenate([length * np.cos(angle), length * np.sin(angle)], axis=2)[:, :, :dimension]


def on_sphere(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return vectors with the norm that normal ones have in the mean square."""
    norms = np.sqrt(np.einsum("rcd,rcd->rc", vectors, vectors))
    return np.asarray(vectors * (UNIT * np.sqrt(vectors.shape[2]) / norms)[:, :, None])


@cache
def normal_table() -> NDArray[np.float32]:
    r"""Return 2^16 whole numbers that are alike likely and together pass for normal, in units of 2^-12.

    Returns
    -------
    float32 array, shape (65536,)
        The second half is the first one, negated.

    Notes
    -----
    The half-normal distribution is cut into 2^15 parts of the same probability, and each is replaced by the
    square root of its mean square, rounded, and by 1 for 0, so that no vector is 0. The variance is 1 - 7e-7,
    the fourth moment 2.9999, the sixth 14.993, and the largest number 4.4.
    """
    normal, parts = NormalDist(), 1 << 15
    edges = np.array([normal.inv_cdf(0.5 + at / (2 * parts)) for at in range(parts)])
    heights = edges * np.exp(-edges * edges / 2) / np.sqrt(2 * np.pi)
    squares = 1 + 2 * parts * (heights - np.append(heights[1:], 0.0))
    half = np.maximum(np.rint(UNIT * np.sqrt(squares)), 1.0)
    return np.concatenate([half, -half]).astype(np.float32)


def quantiles(
    seeds: NDArray[np.uint64],
    numbers: NDArray[np.int64],
    dimension: int,
) -> NDArray[np.float32]:
    """Return vectors of numbers of `normal_table`, each chosen by 16 bits.

    Parameters
    ----------
    seeds : array, shape (reports,)
    numbers : array, shape (reports, some)
        Which of the seed's vectors.
    dimension : int

    Returns
    -------
    float32 array of whole numbers, shape (reports, some, dimension)
        In units of one part in `UNIT`.

    Notes
    -----
    The words are those of `gaussians`, four numbers in each, the lowest bits first. From the seed on all is
    arithmetic of whole numbers, and the same to the bit on every machine.
    """
    each = -(-dimension // 4)
    positions = (numbers.astype(np.uint64) * np.uint64(each))[:, :, None] + np.arange(
        1, each + 1, dtype=np.uint64
    )
    places = _words(seeds, np.asarray(positions, np.uint64)).astype("<u8", copy=False).view("<u2")
    return normal_table().take(places[:, :, :dimension])
