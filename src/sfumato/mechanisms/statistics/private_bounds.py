"""Approximate bounds of a column, found privately among signed powers of two."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.additive import as_number
from sfumato.mechanisms.base.mechanism import Mechanism
from sfumato.mechanisms.base.rational import Number
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.noise.laplace import Laplace
from sfumato.mechanisms.query.records import as_numbers
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring

__all__ = ["PrivateBounds"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateBounds(Mechanism):
    """Lower and upper bound of a column, each zero or a power of two with a sign.

    Parameters
    ----------
    scale : int, float or Fraction
        Of the Laplace noise on the number of records in each bin.
    exponents : tuple of two ints
        Bins run from ``2**exponents[0]`` to ``2**exponents[1]`` in magnitude; what is smaller counts as zero,
        what is larger belongs to the outermost bins.
    beta : float
        The chance that bounds reach further than the data because of noise in an empty bin.
    neighboring : Neighboring

    Notes
    -----
    Guarantee: that of Laplace noise on a histogram with fixed bins: one record is in one bin, so 1 / scale
    under add/remove; two bins under replace-one and zero-out. The bounds are post-processing of the noisy
    counts: the outer borders of the outermost bins whose noisy count is above a threshold that all empty bins
    together pass with probability at most ``beta``, or of the fullest bin if none is. A few outliers are
    left outside. Clamping to bounds that were found in the data without paying is no private mechanism.

    References
    ----------
    Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo, Gipson, "Differentially private SQL with bounded user
    contribution" (PoPETs 2020), approximate bounds.

    Examples
    --------
    >>> import numpy as np
    >>> found = PrivateBounds.calibrated(epsilon=0.5)
    >>> found.release(np.linspace(20, 900, 10_000), rng=1).value
    (16.0, 1024.0)
    """

    scale: Number
    exponents: tuple[int, int] = (-64, 64)
    beta: float = 1e-6
    neighboring: Neighboring = Neighboring.ADD_REMOVE

    def __post_init__(self) -> None:
        rule = "be two integers from -1022 to 1023, the first less than the second"
        given: object = self.exponents
        if not isinstance(given, tuple | list) or len(given) != 2:
            _check.refuse("exponents", rule, given, "pass (-10, 30) for magnitudes from 2**-10 to 2**30")
        low, high = (_check.integer("exponents", end, minimum=-1022) for end in given)
        if not low < high <= 1023:
            _check.refuse("exponents", rule, given, "pass (-10, 30) for magnitudes from 2**-10 to 2**30")
        object.__setattr__(self, "exponents", (low, high))
        _check.unit_interval("beta", self.beta)
        remedy = "pass epsilon= to PrivateBounds.calibrated to have it chosen"
        object.__setattr__(self, "scale", as_number("scale", self.scale, remedy))
        object.__setattr__(self, "scale", self._noise.scale)

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        exponents: tuple[int, int] = (-64, 64),
        beta: float = 1e-6,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> PrivateBounds:
        """Return the mechanism with the smallest noise that is epsilon-DP.

        Parameters
        ----------
        epsilon : float
        exponents, beta, neighboring
            As in the class.

        Returns
        -------
        PrivateBounds
        """
        noise = Laplace.calibrated(
            sensitivity=1, l0=_bins_moved(neighboring), epsilon=epsilon, neighboring=neighboring
        )
        return cls(scale=noise.scale, exponents=exponents, beta=beta, neighboring=neighboring)

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """The loss of one release."""
        return self._noise.privacy_loss

    @property
    def threshold(self) -> int:
        """Noisy counts from here on are taken for records."""
        low, high = self.exponents
        share = self.beta / (2 * (high - low) + 1)
        return max(1, self._noise.distribution.quantile_above(share))

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Find the bounds of a column.

        Parameters
        ----------
        value : array, list or column of shape (n,)
            One real number per record; NaN counts as 0.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of a tuple of two floats, lower < upper.
        """
        source = random_source(rng)
        noisy = np.asarray(self._noise.release(self._counts(value), source).value)
        full = np.flatnonzero(noisy >= self.threshold)
        first, last = (full[0], full[-1]) if full.size else (noisy.argmax(),) * 2
        return self._release_as(Release, (self._border(int(first)), self._border(int(last) + 1)), source)

    @property
    def _noise(self) -> Laplace:
        return Laplace(
            sensitivity=1, scale=self.scale, l0=_bins_moved(self.neighboring), neighboring=self.neighboring
        )

    def _counts(self, value: Any) -> NDArray[np.int64]:
        """Return how many records are in each bin: the negative ones, zero, the positive ones."""
        array = as_numbers(value, integral=False).astype(np.float64)
        low, high = self.exponents
        real = np.nan_to_num(array, nan=0.0, posinf=np.finfo(float).max, neginf=-np.finfo(float).max)
        # frexp gives a mantissa from 1/2 on: the magnitude is at least 2**(exponent - 1).
        index = np.clip(np.frexp(real)[1].astype(np.int64) - 1 - low, -1, high - low - 1) + 1
        index[real == 0] = 0
        half = high - low
        return np.bincount(half + np.where(real < 0, -index, index), minlength=2 * half + 1).astype(np.int64)

    def _border(self, index: int) -> float:
        """Return the lower border of a bin, or the upper one of the bin before it."""
        low, high = self.exponents
        from_zero = index - (high - low)
        if from_zero > 0:
            return math.ldexp(1.0, low + from_zero - 1)
        return -math.ldexp(1.0, low - from_zero)


def _bins_moved(neighboring: Neighboring) -> int:
    return 1 if neighboring is Neighboring.ADD_REMOVE else 2
