"""Upper bounds on log-sum-exp, in integers only."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato.numerics.certified.exponentials import powers
from sfumato.numerics.certified.fixed_point import log_bounds

__all__ = ["COARSEST", "FINEST", "NOTHING", "LogSumExpBounds"]

FINEST: Final = 24
COARSEST: Final = 8
NOTHING: Final = -(1 << 61)
"""The logarithm of what is not there."""

_CELL: Final = 7
_FAR: Final = 24
_FARTHEST: Final = 37
_GUARD: Final = 44
_DIGITS: Final = 12
_BLOCK: Final = 1 << 13

_Steps = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True)
class LogSumExpBounds:
    r"""Logarithms in units of ``2**-bits``, all rounded up.

    Parameters
    ----------
    bits : int
        From `COARSEST` to `FINEST`.
    word : int
        Bits of a random word that chooses by `chances`, at most 52.

    Notes
    -----
    No number here is a float. Both :math:`\log(1 + e^{-d})` and :math:`e^{-d}` are convex and fall, so a
    chord between upper bounds is one, and so is the last entry for all beyond it; the tables hold certified
    bounds (`sfumato.numerics.certified.fixed_point`) in cells of 2^-7. A chord is too high by at most 2^-19
    for the first and by a factor of :math:`1 + 1.01 \cdot 2^{-17}` for the second.

    Examples
    --------
    >>> import numpy as np
    >>> logs = LogSumExpBounds(20, 52)
    >>> int(logs.add(np.array([0]), np.array([0]))[0]) / 2**20  # log(2) = 0.69314718
    0.6931476593017578
    """

    bits: int
    word: int

    def up(self, exponent: Fraction) -> int:
        """Return a rational logarithm in units, rounded up."""
        return -((-exponent.numerator << self.bits) // exponent.denominator)

    def down(self, exponent: Fraction) -> int:
        """Return a rational logarithm in units, rounded down."""
        return (exponent.numerator << self.bits) // exponent.denominator

    def add(self, one: _Steps, other: _Steps) -> _Steps:
        """Bound the logarithms of elementwise sums from above."""
        total, cell = np.maximum(one, other), self.bits - _CELL
        for start in range(0, total.size, _BLOCK):  # the temporaries stay in the cache
            part = slice(start, start + _BLOCK)
            apart = np.minimum(np.abs(one[part] - other[part]), _FAR << self.bits)
            total[part] += _chord(_softplus(self.bits), apart, cell)
        return total

    def chances(self, below: _Steps) -> _Steps:
        """Bound ``2^word exp(-below)`` from above by positive integers, for ``below >= 0``."""
        return _chord(_falling(self.word), np.minimum(below, _FARTHEST << self.bits), self.bits - _CELL)

    def counts(self, number: _Steps) -> _Steps:
        """Bound the logarithms of integers from 1 to 2^62 from above."""
        # A length that the conversion makes one too long only makes the leading digits fewer.
        length = np.frexp(number.astype(np.float64))[1].astype(np.int64)
        shift = np.maximum(length - _DIGITS, 0)
        leading = (number + (np.int64(1) << shift) - 1) >> shift
        logs = _logs()
        return _coarser(logs[leading] + shift * logs[2], self.bits)

    def prefixes(self, summands: _Steps) -> _Steps:
        """Bound the sums of all from the first on, each up to and with its index."""
        total, step = summands, 1
        while step < total.size:
            total = np.concatenate([total[:step], self.add(total[step:], total[:-step])])
            step *= 2
        return total

    def windows(self, summands: _Steps, first: _Steps, last: _Steps) -> _Steps:
        """Bound the sums from ``first`` to before ``last``, adding up to 64 partial ones each."""
        total, at, left = np.full(first.size, NOTHING), first.copy(), last - first
        maximum, table, step = int(left.max(initial=0)), summands, 1
        while step <= maximum:
            chosen = np.flatnonzero(left & step)
            total[chosen] = self.add(total[chosen], table[at[chosen]])
            at[chosen] += step
            table = self.add(table[:-step], table[step:])
            step *= 2
        return total


def _chord(table: _Steps, at: _Steps, cell: int) -> _Steps:
    """Interpolate a table that falls, rounded up."""
    index = at >> cell
    here = table.take(index, mode="clip")  # quicker than looking for indices out of range
    fall = here - table.take(index + 1, mode="clip")
    return np.asarray(here - (fall * (at & ((1 << cell) - 1)) >> cell))


def _coarser(fine: _Steps, bits: int) -> _Steps:
    """Return what is in units of ``2**-FINEST`` in units of ``2**-bits``, rounded up."""
    return np.asarray(-(-fine >> (FINEST - bits)))


def _exponentials(last: int, bits: int) -> list[int]:
    """Bound ``2^bits exp(-d)`` from above in all cells up to ``last``."""
    table = powers(Fraction(1, 1 << _CELL), bits)
    cells = np.arange((last << _CELL) + 1)
    return [int(value) + table.error for value in table.exact(cells)]


@lru_cache(maxsize=32)
def _softplus(bits: int) -> _Steps:
    work = FINEST + _GUARD
    ratios = (1 + Fraction(value, 1 << work) for value in _exponentials(_FAR, work))
    fine = [-(-log_bounds(ratio, work)[1] >> _GUARD) for ratio in ratios]
    return _coarser(np.array([*fine, fine[-1]], np.int64), bits)


@lru_cache(maxsize=32)
def _falling(word: int) -> _Steps:
    fine = [-(-value >> _GUARD) for value in _exponentials(_FARTHEST, word + _GUARD)]
    return np.array([*fine, fine[-1]], np.int64)


@lru_cache(maxsize=1)
def _logs() -> _Steps:
    """Bound ``2^FINEST log(k)`` from above, for k up to ``2**_DIGITS``."""
    numbers = range(1, (1 << _DIGITS) + 1)
    return np.array([0, *(log_bounds(Fraction(k), FINEST)[1] for k in numbers)], np.int64)
