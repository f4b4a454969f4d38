"""Rejection sampling in blocks, so that time depends on the number of rejections only."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato._check import integer

__all__ = ["collect"]

_BLOCK: Final = 1 << 13


def collect(
    size: int | tuple[int, ...] | None, propose: Callable[[int], NDArray[np.int64]], acceptance: float
) -> NDArray[np.int64] | int:
    """Return as many accepted proposals as a shape holds.

    Parameters
    ----------
    size : int, tuple of int or None
        Shape of the result; None for one int.
    propose : callable
        From a number of proposals to the accepted ones among them.
    acceptance : float
        Approximate probability that a proposal is accepted.

    Returns
    -------
    int or int64 array
    """
    shape = () if size is None else size if isinstance(size, tuple) else (size,)
    count = prod(integer("size", part, remedy="pass how many draws are wanted") for part in shape)
    parts: list[NDArray[np.int64]] = []
    missing = count
    while missing > 0:
        # Blocks of fixed sizes, so that their number alone follows the draws that are refused.
        wanted = min(_BLOCK, max(256, 1 << int(missing / acceptance).bit_length()))
        parts.append(propose(wanted)[:missing])
        missing -= parts[-1].size
    drawn = np.concatenate([np.zeros(0, np.int64), *parts])
    return int(drawn[0]) if size is None else drawn.reshape(shape)
