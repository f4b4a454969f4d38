"""The client half of discrete Laplace noise on a grid."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.numeric.randomizer import NumericRandomizer
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.sampling.integer_noise import discrete_laplace

__all__ = ["LaplaceMeanRandomizer"]

_REACH: Final = 64
"""Scales that reports go beyond the grid: noise does so with probability below e^-64."""
_MIN_EPSILON: Final = 2.0**-10


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceMeanRandomizer(NumericRandomizer):
    r"""The grid point plus discrete Laplace noise of scale :math:`m/\epsilon`.

    Parameters
    ----------
    epsilon, bounds, steps
        See `NumericRandomizer`; ``steps`` is the m, and epsilon at least 2^-10.

    Attributes
    ----------
    reach : int
        How far beyond the grid reports go, 64 scales; what noise carries farther is moved back to there.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one: the noise has exactly the distribution
    :math:`P(X = x) \propto e^{-\epsilon |x| / m}`, grid points differ by at most m, and the limit is
    post-processing.

    References
    ----------
    Dwork, McSherry, Nissim, Smith (2006); Ghosh, Roughgarden, Sundararajan (2012), the distribution on whole
    numbers.

    Examples
    --------
    >>> LaplaceMeanRandomizer(epsilon=1.0, bounds=(-1.0, 1.0)).width
    7
    """

    wire_name: ClassVar[str] = "laplace-mean"

    reach: int = field(init=False, repr=False, compare=False)

    def _choose(self) -> None:
        if self.epsilon < _MIN_EPSILON:
            _check.refuse("epsilon", "be at least 2**-10", self.epsilon, "raise it: reports are mere noise")
        self._set(reach=-int(-_REACH * self.scale // 1))

    def _chances(self) -> dict[str, Any]:
        return {"reach": self.reach}

    @property
    def scale(self) -> Fraction:
        """Scale of the noise in steps, exactly m over epsilon."""
        return self.steps / Fraction(self.epsilon)

    @property
    def _bits(self) -> int:
        return (self.steps + 2 * self.reach).bit_length()

    def _encode(self, positions: NDArray[np.int64], source: RandomSource) -> Records:
        noisy = positions + discrete_laplace(self.scale, len(positions), source)
        clipped = np.clip(noisy, -self.reach, self.steps + self.reach) + self.reach
        return self.layout.pack(clipped.astype(np.uint64))

    def opened(self, records: Records) -> NDArray[np.int64]:
        """Return the noisy grid positions of records.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        int64 array, shape (records,)
            From ``-reach`` to ``steps + reach``.
        """
        return self.layout.unpack(records).astype(np.int64) - self.reach

    def well_formed(self, records: Records) -> NDArray[np.bool_]:
        """Return which records lie within the reach.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        bool array, shape (records,)
            True where the record is one that this protocol can send.
        """
        return self.layout.unpack(records) <= np.uint64(self.steps + 2 * self.reach)
