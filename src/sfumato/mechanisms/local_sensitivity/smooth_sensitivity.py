r"""How far apart the records around a rank are: smoothly, and how many must move for them to be far apart.

Let :math:`x_1 \le \dots \le x_n` be records, :math:`x_i` the lower bound for :math:`i \le 0` and the upper
bound for :math:`i > n`, and :math:`r = \lceil qn \rceil`. A *span* is a pair :math:`i < j` with
:math:`i \le r \le j`; its depth is :math:`j - i - 1`, its width :math:`x_j - x_i`.

*One unit moves the value at the rank by at most the width of a span of depth 0, and for each span of one of
two neighbors the other has one that is at least as wide and at most one deeper.* Proof, for a record that is
removed (y has n - 1): then :math:`x_i \le y_i \le x_{i+1}` and :math:`r' \in \{r - 1, r\}`, so that
:math:`y_{r'}` lies in :math:`[x_{r-1}, x_{r+1}]`; and to a span (i, j) of y belongs (i, j + 1) of x, since
:math:`i \le r' \le r \le r' + 1 \le j + 1`. For one that is added, :math:`x_{i-1} \le y_i \le x_i` and
:math:`r' \in \{r, r + 1\}`: (i - 1, j). For one that is replaced n and r stay, and either
:math:`x_i \le y_i \le x_{i+1}` for all i, or :math:`x_{i-1} \le y_i \le x_i`: (i, j + 1) or (i - 1, j). A
record that is zeroed is replaced.

Hence the largest of width times :math:`e^{-\beta\,\text{depth}}` is a beta-smooth bound on the local
sensitivity; where n is public it is the smallest one (Nissim, Raskhodnikova, Smith 2007, Proposition 3.4).
And the smallest depth of spans wider than a number moves by at most 1, and is 0 for both of two neighbors
whose values are further apart than that. The same holds of two ranks :math:`l \le h`, :math:`i \le l`,
:math:`h \le j`, of depth :math:`(l - i) + (j - h) - 1 \ge 0`, where n is public.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.mechanisms.local_sensitivity.bounded_column import RankNeighborhood
from sfumato.numerics.certified.exponentials import powers

__all__ = ["MINIMUM_SMOOTHNESS", "maximum_depth", "smooth_sensitivity_of_rank", "stable_depth"]

MINIMUM_SMOOTHNESS: Final = Fraction(1, 1 << 20)
_SLACK: Final = Fraction(1, 1 << 38)
_UP: Final = 1 + 2.0**-40
_FLOOR_BITS: Final = 64
_LN2: Final = Fraction(6932, 10000)  # above log(2)


def maximum_depth(smoothness: Fraction) -> int:
    """Return the depth from which on no span counts: there `smooth_sensitivity_of_rank` is at its floor."""
    return math.ceil(_FLOOR_BITS * _LN2 / (smoothness - _SLACK)) + 1


def smooth_sensitivity_of_rank(around: RankNeighborhood, smoothness: Fraction, widest: int) -> Fraction:
    r"""Return a smooth bound on how far one unit moves the value at a rank, in steps.

    Parameters
    ----------
    around : Around
        Records on either side, at least as many as `maximum_depth` says, or all.
    smoothness : Fraction
        At least `MINIMUM_SMOOTHNESS`.
    widest : int
        Distance of the bounds, in steps.

    Returns
    -------
    Fraction
        Positive; smooth without exception, whatever was rounded.

    Notes
    -----
    With :math:`\beta' = \beta - 2^{-38}`, the result is between S and :math:`S(1 + 2^{-39})`, S being the
    greater of the greatest :math:`e^{-\beta' \text{depth}}` times width, which is :math:`\beta'`-smooth, and
    a constant, :math:`2^{-64}` of the widest; as :math:`1 + 2^{-39} < e^{\beta - \beta'}`, the result is
    :math:`\beta`-smooth.

    *Rounding.* A float is off by a relative :math:`2^{-48}` at most: weights by 2^-49, a difference and a
    product by 2^-53 each. *Search.* For a records to the left and b to the right, widths
    :math:`E_a + D_b` and weights :math:`v_b` falling in b, the best b does not rise with a: b' > b that does
    not win at m does not win at a > m when :math:`E_a \ge E_m`, as :math:`(E_a + D_{b'})v_{b'} \le (1 +
    \eta)(E_m + D_b)v_b + (E_a - E_m)v_b`, and likewise b' < b at a < m, as :math:`v_{b'} \ge e^{\beta'} v_b
    \ge (1 + \eta)v_b`; so each of at most 64 halvings loses a factor of :math:`1 + \eta < 1 + 2^{-46}`.
    Time: linear in the records around, times the logarithm of their number.
    """
    left, right = around
    weights = powers(smoothness - _SLACK).floats(np.arange(len(left) + len(right)))
    far_right = (right[1:] - left[0]) * weights[: len(right) - 1]
    far_left = (right[0] - left[1:]) * weights[: len(left) - 1]
    best = max(float(far_right.max(initial=0.0)), float(far_left.max(initial=0.0)))
    # Deeper spans are at most the widest, times their weight.
    deepest = int(np.count_nonzero(weights * widest * _UP > best)) + 1
    left, right = left[:deepest], right[:deepest]
    if len(left) > 1 and len(right) > 1:
        best = max(best, _maximum_span(left, right, weights))
    floor = Fraction(widest, 1 << _FLOOR_BITS)
    return max(floor, Fraction(best) * Fraction(_UP))


def _maximum_span(left: NDArray[np.int64], right: NDArray[np.int64], weights: NDArray[np.float64]) -> float:
    """Return the largest of ``(right[b] - left[a]) weights[a + b - 1]`` for a >= 1, by halving rows."""
    rows = len(left) - 1
    # The best column of each row that was looked at; of those beyond the last, 0; of row 0, the last column.
    at = np.zeros(2 * rows + 2, np.int64)
    at[0] = len(right) - 1
    best, stride = 0.0, 1 << (rows.bit_length() - 1)
    while stride:
        row = np.arange(stride, rows + 1, 2 * stride)
        first, last = at[row + stride], at[row - stride]
        lengths = last - first + 1
        starts = np.cumsum(lengths) - lengths
        rows_here = np.repeat(row, lengths)
        columns = np.arange(len(rows_here)) + np.repeat(first - starts, lengths)
        values: NDArray[Any] = (right[columns] - left[rows_here]) * weights[rows_here + columns - 1]
        maxima = np.maximum.reduceat(values, starts)
        winners = np.flatnonzero(values == np.repeat(maxima, lengths))
        at[row] = columns[winners[np.searchsorted(winners, starts)]]
        best = max(best, float(maxima.max()))
        stride >>= 1
    return best


def stable_depth(around: RankNeighborhood, bound: int, maximum: int) -> int:
    """Return the smallest depth of a span that is wider than a bound, or ``maximum`` where none is less deep.

    Parameters
    ----------
    around : Around
        All records on either side, or ``maximum`` of them.
    bound : int
        In steps, at least the distance of the two ranks.
    maximum : int
    """
    left, right = around
    columns = np.searchsorted(right, left + bound, side="right")
    found = (np.arange(len(left)) + columns - 1)[columns < len(right)]
    return int(min(maximum, found.min(initial=maximum)))
