"""The client half of the hybrid mean: by chance one bit or a window, with less error than either."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.base.bernoulli import Coin
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.numeric.randomizer import NumericRandomizer
from sfumato.local.device.numeric.window import OneBitMeanRandomizer, PiecewiseMeanRandomizer
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers

__all__ = ["HybridMeanRandomizer"]

_MIXED_FROM: Final = 0.609
"""Up to about this epsilon the single bit alone has the smallest worst-case error."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HybridMeanRandomizer(NumericRandomizer):
    r"""`PiecewiseMeanRandomizer` with probability :math:`1 - e^{-\epsilon/2}`, else `OneBitMeanRandomizer`.

    Parameters
    ----------
    epsilon, bounds, steps
        See `NumericRandomizer`. Up to an epsilon of 0.609 it is `OneBitMeanRandomizer` alone.

    Attributes
    ----------
    bit, pieces : OneBitMeanRandomizer, PiecewiseMeanRandomizer
        The two.
    choice : Coin or None
        Falls on heads for the second; None for an epsilon up to 0.609.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one: the choice does not depend on the number, and
    given the choice it is that of either, exactly.

    References
    ----------
    Wang, Xiao, Yang, Zhao, Hui, Shin, Shin, Yu (2019), "Collecting and analyzing multidimensional data with
    local differential privacy".

    Examples
    --------
    >>> HybridMeanRandomizer(epsilon=1.0, bounds=(-1.0, 1.0)).width
    6
    """

    wire_name: ClassVar[str] = "hybrid-mean"

    bit: OneBitMeanRandomizer = field(init=False, repr=False, compare=False)
    pieces: PiecewiseMeanRandomizer = field(init=False, repr=False, compare=False)
    choice: Coin | None = field(init=False, repr=False, compare=False)

    def _choose(self) -> None:
        chance = Fraction(-math.expm1(-self.epsilon / 2))
        self._set(
            choice=Coin.below(chance) if self.epsilon > _MIXED_FROM else None,
            bit=OneBitMeanRandomizer(epsilon=self.epsilon, bounds=self.bounds),
        )
        pieces = PiecewiseMeanRandomizer(epsilon=self.epsilon, bounds=self.bounds, steps=self.steps)
        self._set(pieces=pieces)

    def _chances(self) -> dict[str, Any]:
        parts = (self.bit.inside.threshold, self.pieces.window, self.pieces.inside.threshold)
        return {"choice": self.choice.threshold if self.choice else 0, "parts": list(parts)}

    @property
    def _bits(self) -> int:
        return 1 + (self.pieces.outputs - 1).bit_length()

    def _encode(self, positions: NDArray[np.int64], source: RandomSource) -> Records:
        # A grid point goes to either end by chance, up with probability position / steps: its mean stays.
        ends = (uniform_integers(self.steps, len(positions), source) < positions).astype(np.int64)
        bits = self.bit.drawn(ends, source)
        pieces = self.pieces.drawn(positions, source)
        size = len(positions)
        chosen = self.choice.flip(size, source) if self.choice else np.zeros(size, np.bool_)
        payload = np.where(chosen, 2 * pieces + 1, 2 * bits)
        # The lowest bit names the part.
        return self.layout.pack(payload.astype(np.uint64))

    def opened(self, records: Records) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Return which records are of the window, and what each of them reports.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        window : bool array, shape (records,)
            Whether the report is of `pieces`; else it is of `bit`.
        reports : int64 array, shape (records,)
        """
        payloads = self.layout.unpack(records).astype(np.int64)
        return payloads & 1 == 1, payloads >> 1

    def well_formed(self, records: Records) -> NDArray[np.bool_]:
        """Return which records hold a report of the part that they name.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        bool array, shape (records,)
            True where the record is one that this protocol can send.
        """
        chosen, reports = self.opened(records)
        maximum = np.where(chosen, self.pieces.outputs, self.bit.outputs)
        return np.asarray((reports < maximum) & (~chosen | (self.choice is not None)))

    def probabilities(self, point: int) -> dict[bytes, Fraction]:
        """Return the probability of each report, were a grid point true: private, for small grids.

        Parameters
        ----------
        point : int
            A grid point, from 0 to `steps`.

        Returns
        -------
        dict of bytes to Fraction
            From each possible report to its exact probability; they sum to 1.
        """
        mixed = self.choice.chance if self.choice else Fraction(0)
        up = Fraction(point, self.steps)
        high, low = self.bit.inside.chance, 1 - self.bit.inside.chance
        one = up * high + (1 - up) * low
        distribution = {0: (1 - mixed) * (1 - one), 2: (1 - mixed) * one}
        if mixed:
            near, far = (
                self.pieces.inside.chance / self.pieces.window,
                (1 - self.pieces.inside.chance) / self.steps,
            )
            for at in range(self.pieces.outputs):
                within = point <= at < point + self.pieces.window
                distribution[2 * at + 1] = mixed * (near if within else far)
        records = self.layout.pack(np.array(list(distribution), np.uint64))
        return {row.tobytes(): mass for row, mass in zip(records, distribution.values(), strict=True)}
