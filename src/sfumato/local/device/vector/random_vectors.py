"""Random vectors that follow from a seed, alike on every device and on the server."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["PIECE", "UNIT", "gaussians", "on_sphere"]

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
    started = _mixed(np.asarray(seeds + _STEP, np.uint64))
    words = _mixed((started[:, None, None] + positions * _STEP).astype(np.uint64, copy=False)) >> np.uint64(
        11
    )
    length = np.sqrt(-2.0 * np.log((words[:, :, :half] + np.uint64(1)) * 2.0**-53)) * UNIT
    angle = words[:, :, half:] * (2.0**-52 * np.pi)
    return np.concatenate([length * np.cos(angle), length * np.sin(angle)], axis=2)[:, :, :dimension]


def on_sphere(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return vectors with the norm that normal ones have in the mean square."""
    norms = np.sqrt(np.einsum("rcd,rcd->rc", vectors, vectors))
    return np.asarray(vectors * (UNIT * np.sqrt(vectors.shape[2]) / norms)[:, :, None])
