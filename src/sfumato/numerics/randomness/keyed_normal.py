r"""Normal numbers computed from a key and their index by ChaCha20.

Index i of stream s under a key always has the same number, whatever is drawn before or beside it: noise for
training needs no state but a step's number, and can be drawn again from any index on.

*What is drawn.* Two 64-bit words give a pair (Box, Muller 1958): :math:`U`, a uniform number of which the
word is the first 64 bits, for a radius :math:`\sqrt{-2 \ln U}`, and a direction with 61 bits in an eighth
of a turn. Let :math:`Z` be the exactly normal number of the whole, infinitely long :math:`U` and direction.
Then the double X that is computed satisfies, for words that lie i and j cells from the end of the radii and
from the axis, if both are more than 2^8,

.. math:: |X - Z| \le (2^{-48} + 1/i + 1/j) |Z|;

the proof is beside the code, in ``_keyed.h``. At most n cells on either end have the probability
:math:`2^{1-64} n`, and at the axis :math:`2^{-61} n`: so a relative error above :math:`t \ge 2^{-47}` has
at most the probability :math:`2^{-58}/t`. Also :math:`|X| < 9.5`, beyond which a normal number lies with
probability :math:`2^{-68}`. X is known to 53 bits: the product with the scale and the sum are taken in
double and rounded once to the array's type, so that noise in float32 has bits far below the last one of a
sum.

*What this means for privacy.* The numbers are as far from independent normal ones as whoever looks at them
can distinguish ChaCha20 from random bits, and as the error above allows. No bound on the total variation
follows that would be of use for millions of entries: a sum in float32 may round otherwise than the exact one
with a probability near :math:`2^{-20}` for each. So noise of this kind is marked ``float_safe=False``.
`rounded_normals` is exact: no error of floats is left in it.

References
----------
RFC 8439, "ChaCha20 and Poly1305 for IETF protocols" (2018), with the 64-bit counter of Bernstein (2008).
Salmon, Moraes, Dror, Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3", counters as generators.
Mironov (2012), "On significance of the least significant bits for differential privacy".
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.numerics import _kernels
from sfumato.numerics.randomness.keyed_rounding import exactly_rounded

__all__ = ["KEY_BYTES", "MAX_SCALE", "add_normals", "keystream", "rounded_normals"]

KEY_BYTES: Final = 32
MAX_SCALE: Final = 2.0**46
"""The largest scale of normal numbers that are rounded to integers."""

_END: Final = 1 << 62
_PART: Final = 1 << 16


def _stream(key: bytes, stream: tuple[int, int]) -> int:
    if len(key) != KEY_BYTES:
        _check.refuse("key", f"be {KEY_BYTES} bytes", len(key), f"pass os.urandom({KEY_BYTES})")
    high, low = (_check.integer("stream", part, remedy="number streams from 0") for part in stream)
    if max(high, low) >> 32:
        _check.refuse("stream", "be two integers below 2**32", stream, "number streams from 0")
    return high << 32 | low


def _first(start: int, count: int) -> int:
    if _check.integer("start", start, remedy="number draws from 0") + count > _END:
        _check.refuse("start", "leave all indices below 2**62", start, "use another stream")
    return start


def keystream(key: bytes, count: int, *, stream: tuple[int, int] = (0, 0), block: int = 0) -> bytes:
    """Return bytes of ChaCha20.

    Parameters
    ----------
    key : bytes
        32 bytes.
    count : int
        How many bytes.
    stream : pair of int
        Below 2**32 each: the nonce's last 64 bits, the second number first.
    block : int
        The counter of the first block, with the nonce's first 32 bits as its upper half.

    Examples
    --------
    >>> keystream(bytes(32), 8).hex()
    '76b8e0ada0f13d90'
    """
    if _check.integer("block", block, remedy="number blocks from 0") >> 64:
        _check.refuse("block", "be below 2**64", block, "use another stream")
    out = bytearray(_check.integer("count", count, remedy="pass how many are wanted"))
    _kernels.keystream(key, _stream(key, stream), block, out)
    return bytes(out)


def add_normals(
    out: NDArray[Any], key: bytes, *, stream: tuple[int, int] = (0, 0), start: int = 0, scale: float = 1.0
) -> None:
    """Add ``scale`` times normal numbers to an array, in place.

    Parameters
    ----------
    out : array of float32 or float64
        Contiguous, of one dimension.
    key : bytes
        32 bytes.
    stream : pair of int
        Below 2**32 each.
    start : int
        The index whose number is added to the first entry; the others follow.
    scale : float
        Finite, at least 0.

    Notes
    -----
    Guarantee: see the module. The same bits on every machine.

    Examples
    --------
    >>> whole, part = np.zeros(1000), np.zeros(10)
    >>> add_normals(whole, bytes(32))
    >>> add_normals(part, bytes(32), start=500)
    >>> bool((whole[500:510] == part).all())
    True
    """
    if out.ndim != 1 or out.dtype not in (np.float32, np.float64) or not out.flags.c_contiguous:
        rule = "be a contiguous float32 or float64 array of one dimension"
        _check.refuse("out", rule, (out.dtype.name, out.shape), "pass numpy.zeros(n)")
    nonce = _stream(key, stream)
    scale = _check.non_negative("scale", scale, "pass a standard deviation")
    _kernels.add_normals(key, nonce, _first(start, out.size), out, out.dtype == np.float64, scale)


def rounded_normals(
    count: int, key: bytes, *, scale: float, stream: tuple[int, int] = (0, 0), start: int = 0
) -> NDArray[np.int64]:
    r"""Return normal numbers times ``scale``, rounded to the nearest integer, exactly.

    Parameters
    ----------
    count : int
        How many.
    key : bytes
        32 bytes.
    scale : float
        From 0 to 2**46; it means the number that it is.
    stream : pair of int
        Below 2**32 each.
    start : int
        The index of the first.

    Returns
    -------
    ndarray of int64

    Notes
    -----
    Guarantee: given uniform random bits, :math:`P(X = k) = \Phi((k + 1/2)/s) - \Phi((k - 1/2)/s)` for the
    scale s, exactly, up to a total variation of 2**-900 for 2**62 indices. An index where the kernel's error
    bound does not decide gets more bits, and rational bounds instead of floats.

    Adding this to an integer is the same as adding ``scale`` times a normal number and rounding the sum: so a
    release on the integers is a function of what the Gaussian mechanism would have released, and costs no
    more than that, in any composition and under any sampling.

    Examples
    --------
    >>> rounded_normals(4, bytes(32), scale=1000.0).dtype
    dtype('int64')
    """
    nonce = _stream(key, stream)
    scale = _check.non_negative("scale", scale, "pass a standard deviation")
    if scale > MAX_SCALE:
        _check.refuse("scale", "be at most 2**46", scale, "choose a coarser grid")
    out = np.empty(_check.integer("count", count, remedy="pass how many are wanted"), np.int64)
    _first(start, count)
    undecided = np.empty(_PART, np.int64)
    for first in range(0, out.size, _PART):
        part = out[first : first + _PART]
        found = _kernels.rounded_normals(key, nonce, start + first, part, scale, undecided)
        for index in undecided[:found].tolist():
            part[index] = exactly_rounded(key, nonce, start + first + index, scale)
    return out
