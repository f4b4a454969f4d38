"""Which of many coins of one rational chance fall heads, exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.learning.sampling.seed import KeyedStream
from sfumato.numerics.randomness.uniform import UniformBits

__all__ = ["heads"]

_BITS = 16
_PIECE = 1 << 18


def heads(count: int, chance: Fraction, stream: KeyedStream) -> NDArray[np.int64]:
    """Return the sorted positions of the coins that fall heads.

    Parameters
    ----------
    count : int
        How many independent coins there are.
    chance : Fraction
        Of heads, from 0 to 1; a float's exact value.
    stream : KeyedStream

    Returns
    -------
    ndarray of int64

    Notes
    -----
    A coin falls heads if a uniform real lies below the chance. Its first 16 bits decide unless they are those
    of the chance; then it gets 64 more at a time until they do. No probability is rounded.

    Examples
    --------
    >>> from sfumato.learning.sampling.seed import Seed
    >>> heads(3, Fraction(1), Seed.of(1).stream("doctest", 0)).tolist()
    [0, 1, 2]
    """
    if chance >= 1:
        return np.arange(count, dtype=np.int64)
    scaled = chance * (1 << _BITS)
    whole = scaled.numerator // scaled.denominator
    below, open_ = [], []
    for start in range(0, count if chance > 0 else 0, _PIECE):
        size = min(_PIECE, count - start)
        bits = np.frombuffer(stream.bytes(2 * size), "<u2")
        below.append(np.flatnonzero(bits < whole) + start)
        if scaled != whole:
            open_.append(np.flatnonzero(bits == whole) + start)
    found = [*below, _decided(np.concatenate(open_), scaled - whole, stream)] if open_ else below
    return np.sort(np.concatenate(found)).astype(np.int64) if found else np.empty(0, np.int64)


def _decided(indices: NDArray[np.intp], rest: Fraction, stream: KeyedStream) -> NDArray[np.intp]:
    """Return the positions of those among coins that fall heads with the chance ``rest``, below 1."""
    scaled = rest * (1 << 64)
    whole = scaled.numerator // scaled.denominator
    if not indices.size:
        return indices
    words = stream.words(indices.size)
    below = words < np.uint64(whole)
    for index in np.flatnonzero(words == np.uint64(whole)):
        below[index] = _below(rest, UniformBits(whole, 64, stream))
    return indices[below]


def _below(chance: Fraction, uniform: UniformBits) -> bool:
    while True:
        if (uniform.value + 1) * chance.denominator <= chance.numerator << uniform.width:
            return True
        if uniform.value * chance.denominator >= chance.numerator << uniform.width:
            return False
        uniform.extend()
