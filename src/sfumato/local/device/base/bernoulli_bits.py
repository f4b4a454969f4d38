"""Many bits at once, eight to a byte, each set as a coin falls on heads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.base.bernoulli import Coin
from sfumato.local.device.base.record_layout import Records
from sfumato.numerics import _kernels
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["biased_bits", "bits_of_words", "randomized_bits"]


def bits_of_words(coin: Coin, shape: tuple[int, ...], words: NDArray[np.uint64]) -> Records:
    """Return rows of bits that are set as a coin falls, given ``coin.bits`` random words for each 64.

    Parameters
    ----------
    coin : Coin
    shape : (int, int)
        Rows, and bytes of a row.
    words : uint64 array
        Uniformly random.

    Returns
    -------
    uint8 array, shape (rows, bytes)
    """
    flips = np.empty(len(words) // coin.bits, np.uint64)
    _kernels.coins(words, coin.threshold, coin.bits, flips)
    return flips.view(np.uint8)[: shape[0] * shape[1]].reshape(shape)


def biased_bits(coin: Coin, shape: tuple[int, ...], source: RandomSource) -> Records:
    """Return rows of bits, (rows, bytes), each set with the chance of a coin, independently.

    Parameters
    ----------
    coin : Coin
    shape : (int, int)
        Rows, and bytes of a row.
    source : RandomSource

    Returns
    -------
    uint8 array, shape (rows, bytes)
    """
    return bits_of_words(coin, shape, source.words(-(-shape[0] * shape[1] // 8) * coin.bits))


def randomized_bits(bits: Records, high: Coin, low: Coin, source: RandomSource) -> Records:
    """Return rows of bits that are set as ``high`` falls where these are 1, and as ``low`` where they are 0.

    Parameters
    ----------
    bits : uint8 array, shape (rows, bytes)
    high, low : Coin
        Chances of a 1 where the given bit is 1, and where it is 0.
    source : RandomSource

    Returns
    -------
    uint8 array, shape (rows, bytes)

    Examples
    --------
    >>> from sfumato.numerics.randomness.source import SimulatedSource
    >>> rare, frequent = Coin(1, 60), Coin(2**60 - 1, 60)
    >>> randomized_bits(np.array([[7], [8]], np.uint8), frequent, rare, SimulatedSource(1)).tolist()
    [[7], [8]]
    """
    if high.bits == low.bits and high.threshold + low.threshold == 1 << low.bits:
        return bits ^ biased_bits(low, bits.shape, source)
    zeros, ones = biased_bits(low, bits.shape, source), biased_bits(high, bits.shape, source)
    return bits & ones | ~bits & zeros
