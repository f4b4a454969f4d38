"""A trimmed mean of a column, with noise scaled to its smooth sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np

from sfumato import _check
from sfumato.mechanisms.base.rational import Number
from sfumato.mechanisms.local_sensitivity.bounded_column import RankNeighborhood, as_proportion
from sfumato.mechanisms.local_sensitivity.smooth_noise import SmoothStatistic
from sfumato.mechanisms.local_sensitivity.smooth_sensitivity import smooth_sensitivity_of_rank
from sfumato.privacy.neighboring import Neighboring

__all__ = ["SmoothTrimmedMean"]

_HALF: Final = 32


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothTrimmedMean(SmoothStatistic):
    r"""The mean without the smallest and largest records, with noise that follows how far apart those are.

    Parameters
    ----------
    trim : int, float or Fraction
        Share of the records that is left out on either side, above 0 and below 1/2; ``floor(trim n)`` of n.
        Taken as the nearest fraction with a denominator of at most 2**20.
    bounds, noise_multiplier, smoothness, noise, grid
        As in `SmoothQuantile`.
    neighboring : Neighboring
        To be stated, as REPLACE_ONE or ZERO_OUT: the number of records is public. Under add/remove use
        `TrimmedMean`.

    Notes
    -----
    Guarantee: as in `SmoothQuantile`, for a public number n of records.

    *Smooth sensitivity.* Let m records be left out on either side, and :math:`x_1 \le \dots \le x_n`. A
    record that is replaced makes :math:`x_i \le y_i \le x_{i+1}` for all i, or :math:`x_{i-1} \le y_i \le
    x_i`; so the sum of the middle :math:`n - 2m` rises by at most :math:`\sum_{i=m+1}^{n-m} (x_{i+1} - x_i) =
    x_{n-m+1} - x_{m+1}`, or falls by at most :math:`x_{n-m} - x_m`: widths of depth 0 of the ranks m + 1 and
    n - m (`sfumato.mechanisms.local_sensitivity.smooth_sensitivity`). Rounding the mean to whole steps adds
    at most a step, and a smooth bound plus a constant is as smooth.

    References
    ----------
    Bun, Steinke, "Average-case averages: private algorithms for smooth sensitivity and mean estimation"
    (NeurIPS 2019), Proposition 10.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.privacy.neighboring import Neighboring
    >>> mechanism = SmoothTrimmedMean.calibrated(
    ...     trim=0.1, bounds=(-1e4, 1e4), epsilon=1.0, neighboring=Neighboring.REPLACE_ONE
    ... )
    >>> round(mechanism.release(np.random.default_rng(0).normal(50, 1, 20_000), rng=1).value, 1)
    50.0
    """

    trim: Number
    neighboring: Neighboring = Neighboring.ADD_REMOVE

    def _settle(self) -> None:
        trim = as_proportion("trim", self.trim)
        if not trim < Fraction(1, 2):
            _check.refuse("trim", "be above 0 and below 1/2", self.trim, "take SmoothQuantile for the median")
        object.__setattr__(self, "trim", trim)
        if self.neighboring is Neighboring.ADD_REMOVE:
            remedy = "pass Neighboring.REPLACE_ONE, or use TrimmedMean where the number of records is private"
            _check.refuse("neighboring", "be REPLACE_ONE or ZERO_OUT", self.neighboring, remedy)

    def _around(self, data: Any) -> tuple[int, Fraction]:
        steps, (lower, upper) = self._column.steps(data), self._column.ends
        size = len(steps)
        if not size:
            return lower, Fraction(upper - lower)
        cut = math.floor(Fraction(self.trim) * size)
        retained = size - 2 * cut
        around = RankNeighborhood(
            np.append(steps[: cut + 1][::-1], lower), np.append(steps[size - cut - 1 :], upper)
        )
        middle = steps[cut : size - cut]
        # Two sums of halves, neither of which leaves 64 bits.
        total = (int((middle >> _HALF).sum()) << _HALF) + int((middle & ((1 << _HALF) - 1)).sum())
        centre = round(Fraction(total, retained))
        sensitivity = smooth_sensitivity_of_rank(around, Fraction(self.smoothness), upper - lower)
        return centre, sensitivity / retained + 1
