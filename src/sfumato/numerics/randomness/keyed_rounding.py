"""Exact rounding of keyed normal numbers where floats do not decide: more bits and rational bounds."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import isqrt
from typing import Final

from sfumato.numerics import _kernels
from sfumato.numerics.certified.fixed_point import log_bounds

__all__ = ["exactly_rounded"]

_GROUP: Final = 128
_PAIRS: Final = 64
_ROW: Final = 16
_GUARD: Final = 32
_MORE: Final = 64
_DIRECTION_BITS: Final = 61
_EXTENSIONS: Final = 1 << 63
_MAXIMUM: Final = 16
_IN_A_BLOCK: Final = 4


def _block(key: bytes, stream: int, counter: int) -> bytes:
    out = bytearray(64)
    _kernels.keystream(key, stream, counter, out)
    return bytes(out)


def _word(key: bytes, stream: int, group: int, index: int) -> int:
    """Return a group's 64-bit word: two words of a row, in neighboring blocks."""
    row, first = divmod(2 * index, _ROW)
    low, high = (
        int.from_bytes(_block(key, stream, group * _ROW + first + i)[4 * row : 4 * row + 4], "little")
        for i in range(2)
    )
    return high << 32 | low


def _arctan(inverse: int, bits: int) -> int:
    """Return ``2^bits arctan(1 / inverse)``, off by less than ``bits`` units."""
    term = (1 << bits) // inverse
    total, n = 0, 1
    while term:
        total += (term if n % 4 == 1 else -term) // n
        term, n = term // (inverse * inverse), n + 2
    return total


@cache
def _eighth(bits: int) -> tuple[int, int]:
    """Bound ``2^bits pi / 4`` (Machin's formula)."""
    work = bits + 2 * bits.bit_length() + 8
    found = 4 * _arctan(5, work) - _arctan(239, work)
    slack = 5 * work
    return (found - slack) >> (work - bits), ((found + slack) >> (work - bits)) + 1


def _sine_cosine(t: int, bits: int) -> tuple[int, int, int]:
    """Return ``2^bits`` times sine and cosine of ``t / 2^bits`` in [0, 1], and by how much either may be off.

    Each term of the series is too low by less than 2 units, and what follows the last by less than 2.
    """
    parts = [0, 0]
    term, n = 1 << bits, 0
    while term:
        parts[n % 2] += term if n % 4 < 2 else -term
        n += 1
        term = (term * t >> bits) // n
    return parts[1], parts[0], 2 * n + 2


def _radius(a: int, width: int, bits: int) -> tuple[int, int] | None:
    """Bound ``2^bits sqrt(-2 ln U)`` for U in [a, a + 1] / 2^width; None where it may be without end."""
    if not a:
        return None
    low = log_bounds(Fraction(1 << width, a + 1), 2 * bits)[0]
    high = log_bounds(Fraction(1 << width, a), 2 * bits)[1]
    return isqrt(2 * low), isqrt(2 * high) + 1


def _part(b: int, width: int, sine: bool, bits: int) -> tuple[int, int]:
    """Bound ``2^bits`` times the sine or cosine of [b, b + 1] / 2^width eighths of a turn."""
    smallest, largest = _eighth(bits)
    ends = (b * smallest) >> width, -(-(b + 1) * largest >> width)
    sine_low, cosine_high, _ = _sine_cosine(ends[0], bits)
    sine_high, cosine_low, off = _sine_cosine(ends[1], bits)
    low, high = (sine_low, sine_high) if sine else (cosine_low, cosine_high)
    return max(low - off, 0), high + off


def exactly_rounded(key: bytes, stream: int, index: int, scale: float) -> int:
    """Return the number at an index times ``scale``, rounded to the nearest integer.

    Parameters
    ----------
    key : bytes
        32 bytes.
    stream, index : int
        The nonce, and the index of the number in its stream.
    scale : float
        Positive, at most 2**46.

    Returns
    -------
    int
        The exact product, rounded to the nearest integer.

    Notes
    -----
    Bits are appended to both words of the pair, 64 at a time, from blocks with a counter of 2**63 and more,
    which no index has; until bounds on the numbers of all reals with these bits round alike. What 1,085 bits
    do not decide is taken as their lower bound, with a probability below 2**-1000.
    """
    group, at = divmod(index, _GROUP)
    pair = at % _PAIRS
    a = _word(key, stream, group, pair)
    b = _word(key, stream, group, pair + _PAIRS)
    octant, b = b >> _DIRECTION_BITS, b & ((1 << _DIRECTION_BITS) - 1)
    second = at >= _PAIRS
    sine = second != bool(octant & 1)
    sign = -1 if octant >> (2 if second else 1) & 1 else 1
    exact, width = Fraction(scale), 64
    found = 0
    more = b""
    for times in range(_MAXIMUM):
        if times % _IN_A_BLOCK == 0:
            counter = _EXTENSIONS + (times // _IN_A_BLOCK << 61) + group * _PAIRS + pair
            more = _block(key, stream, counter)
        a, b = (word << _MORE | int.from_bytes(more[i : i + 8], "big") for word, i in ((a, 0), (b, 32)))
        more = more[8:]
        width += _MORE
        bits = width + _GUARD
        radius = _radius(a, width, bits)
        part = _part(b, width - 64 + _DIRECTION_BITS, sine, bits)
        if radius is None:
            continue
        found, other = (_nearest(exact * r * p, bits) for r, p in zip(radius, part, strict=True))
        if found == other:
            break
    return sign * found


def _nearest(value: Fraction, bits: int) -> int:
    """Return the integer nearest to ``value / 4^bits``."""
    return int((value / (1 << (2 * bits)) + Fraction(1, 2)).__floor__())
