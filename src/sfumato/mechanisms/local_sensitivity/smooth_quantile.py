"""A quantile of a column, with noise scaled to its smooth sensitivity."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from sfumato.mechanisms.base.rational import Number
from sfumato.mechanisms.local_sensitivity.bounded_column import as_proportion
from sfumato.mechanisms.local_sensitivity.smooth_noise import SmoothStatistic
from sfumato.mechanisms.local_sensitivity.smooth_sensitivity import maximum_depth, smooth_sensitivity_of_rank

__all__ = ["SmoothQuantile"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothQuantile(SmoothStatistic):
    r"""A quantile with noise that is small where many records are close to it.

    `Quantile` and `InverseSensitivity` are about ten times as accurate for the same epsilon; this is for who
    wants noise of a known distribution around the very order statistic.

    Parameters
    ----------
    quantile : int, float or Fraction
        Strictly between 0 and 1; 1/2 is the median. Of n records it is the one at rank ``ceil(quantile n)``.
        Taken as the nearest fraction with a denominator of at most 2**20.
    bounds : tuple of two numbers
        Public bounds; records and the answer are clamped to them. Two ints mean that answers are whole.
    noise_multiplier : int, float or Fraction
        The noise's scale (the standard deviation of "gaussian") over the smooth sensitivity.
    smoothness : int, float or Fraction
        By how much the logarithm of the smooth sensitivity may move between neighbors; from 2**-20 to 64.
    noise : {"student", "cauchy", "laplace", "gaussian"}
        Student's t noise of 3 degrees and Cauchy noise are purely private, the others need a delta.
    grid : Grid, optional
        What records are rounded to: 1 for int bounds, else 2**-40 of the larger bound.
    neighboring : Neighboring

    Notes
    -----
    Guarantee: that of `sfumato.privacy.SmoothSensitivity`, `SmoothLaplace` or `SmoothGaussian`, whose
    conditions hold: the smooth sensitivity is proven in the notes of
    `sfumato.mechanisms.local_sensitivity.smooth_sensitivity`, under each of the relations, and computed so
    that rounding leaves it smooth (`smooth_sensitivity_of_rank`).

    *What is drawn.* The leaf prices a continuous distribution around the exact statistic, which is a whole
    number of steps f. The release is f plus the noise rounded to whole steps, which is the noisy real number
    rounded to whole steps: a public function of it, as is clamping. No float decides how it rounds
    (`sfumato.numerics.sampling.rounded_noise`).

    The answer has no error bar: the noise's scale is secret. NaN counts as 0; of empty data the quantile is
    the lower bound, and its smooth sensitivity the distance of the bounds.

    Time: linear in n, and n log n in the few records that count.

    References
    ----------
    Nissim, Raskhodnikova, Smith, "Smooth sensitivity and sampling in private data analysis" (STOC 2007).

    Examples
    --------
    >>> import numpy as np
    >>> median = SmoothQuantile.calibrated(bounds=(0, 120), epsilon=1.0, delta=1e-6)
    >>> median.noise, median.release(np.arange(9000) % 90, rng=1).value
    ('laplace', 44)
    """

    quantile: Number = Fraction(1, 2)

    def _settle(self) -> None:
        object.__setattr__(self, "quantile", as_proportion("quantile", self.quantile))

    def _around(self, data: Any) -> tuple[int, Fraction]:
        column, smoothness = self._column, Fraction(self.smoothness)
        around = column.around(column.ranks(data), Fraction(self.quantile), maximum_depth(smoothness))
        lower, upper = column.ends
        return int(around.left[0]), smooth_sensitivity_of_rank(around, smoothness, upper - lower)
