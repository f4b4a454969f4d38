"""The distribution of what many clients' parts of Laplace noise add up to, and roundings with it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, final

import numpy as np

from sfumato.local.frequency.variance import Array

__all__ = ["SharedNoise"]

_FINE: Final = 256.0
_WIDE: Final = 100.0
_SPARE: Final = 2.0**-20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SharedNoise:
    r"""Noise on a sum of whole numbers, to which every client adds its part.

    Parameters
    ----------
    scale : float
        Of the discrete Laplace noise that ``parts = 1`` stands for.
    parts : float
        How many clients add their part, over how many make up that noise.
    rounding : float
        Variance that rounding adds, at most.

    Notes
    -----
    With :math:`q = e^{-1/s}` and R parts the characteristic function is :math:`\left(\frac{(1-q)^2}{(1-q)^2 +
    4 q \sin^2(t/2)}\right)^R`: that of the difference of two sums of Pólya's distribution. Rounding is
    normal.

    Examples
    --------
    >>> noise = SharedNoise(scale=2.0, parts=1.0, rounding=0.0)
    >>> round(noise.variance, 3), round(noise.half_width(0.95))
    (7.835, 6)
    """

    scale: float
    parts: float
    rounding: float

    @property
    def variance(self) -> float:
        """Variance of the noise and the roundings."""
        return self.parts / (2 * math.sinh(1 / (2 * self.scale)) ** 2) + self.rounding

    def half_width(self, level: float) -> float:
        """Return the smallest distance that the noise does not exceed with probability ``level``.

        Parameters
        ----------
        level : float
            Strictly between 0 and 1.

        Returns
        -------
        float
            In units of the sum.

        Notes
        -----
        The distribution is computed by a Fourier transform. Scales beyond 256 are measured in steps of
        scale/256, which changes it by some (1/256)^2, and the distance is rounded up to such a step. A
        millionth of one is added, so that noise at the very end, often there on a lattice, is not lost to
        rounding.
        """
        unit, within = _distribution(self.scale, self.parts, self.rounding)
        return unit * (min(int(np.searchsorted(within, level)), len(within) - 1) + _SPARE)


@lru_cache(maxsize=64)
def _distribution(scale: float, parts: float, rounding: float) -> tuple[float, Array]:
    """Return a step, and the probabilities to be within 0, 1, ... of them."""
    unit = max(1.0, scale / _FINE)
    rate, deviation = unit / scale, rounding / unit**2
    stddev = math.sqrt(parts / (2 * math.sinh(rate / 2) ** 2) + deviation)
    size = 1 << max(8, math.ceil(math.log2(_WIDE * (stddev + 1 / rate))))
    t = 2 * np.pi * np.arange(size // 2 + 1) / size
    odds = np.expm1(-rate) ** 2
    log = -parts * np.log1p(4 * math.exp(-rate) * np.sin(t / 2) ** 2 / odds) - deviation * t * t / 2
    masses = np.maximum(np.fft.irfft(np.exp(log), size)[: size // 2], 0.0)
    return unit, np.cumsum(masses) * 2 - masses[0]
