"""The hybrid of one bit and a window as a protocol for a mean."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.numeric import hybrid as client
from sfumato.local.numeric.estimate import MeanEstimate
from sfumato.local.numeric.protocol import NumericProtocol
from sfumato.local.numeric.simulation import drawn_reports, first_two
from sfumato.local.numeric.window import window_loss
from sfumato.local.numeric.window_moments import WindowMoments
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.nodes.mixture import Mixture

__all__ = ["HybridMean"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HybridMean(NumericProtocol[client.HybridMeanRandomizer, MeanEstimate]):
    r"""`PiecewiseMean` or `OneBitMean` by chance: the smallest error in the worst case for every epsilon.

    Parameters
    ----------
    epsilon, bounds
        See `NumericProtocol`.
    steps : int
        Of the grid between the bounds, up to 2^14.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see
    `sfumato.local.device.HybridMeanRandomizer`. The estimate is the mean of the unbiased parts of all
    reports. Above an epsilon of 0.609 its variance is about the same for all numbers. Both kinds of reports
    are of the same respondents, drawn by chance: so those of windows also show how far the numbers of the
    others differ.

    References
    ----------
    Wang, Xiao, Yang, Zhao, Hui, Shin, Shin, Yu (2019), "Collecting and analyzing multidimensional data with
    local differential privacy".

    Examples
    --------
    >>> round(HybridMean(epsilon=1.0, bounds=(-1.0, 1.0)).variance(1), 2)
    4.29
    """

    wire_name: ClassVar[str] = "hybrid-mean"

    steps: int = 2048
    parts: tuple[WindowMoments, WindowMoments] = field(init=False, repr=False, compare=False)

    def _prepare(self) -> None:
        self._set(parts=(WindowMoments.of(self.device.bit), WindowMoments.of(self.device.pieces)))

    @property
    def privacy_loss(self) -> PrivacyLoss:
        """One loss or the other, and it is public which."""
        choice, bit = self.device.choice, window_loss(self.device.bit)
        if choice is None:
            return bit
        chance = float(choice.chance)
        return Mixture((bit, window_loss(self.device.pieces)), (1 - chance, chance), index_public=True)

    @property
    def totals(self) -> int:
        """Four: single bits that are set; reports of windows, their sum and the sum of their squares."""
        return 4

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Sum up the bits, and count and sum up the reports of windows and their squares.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Well-formed records, one a row.

        Returns
        -------
        ndarray of int64, shape (totals,)
            What they add to the aggregator's totals.
        """
        chosen, reports = self.device.opened(records)
        pieces = reports[chosen]
        return np.array([reports[~chosen].sum(), len(pieces), pieces.sum(), (pieces * pieces).sum()])

    def _simulate(self, points: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        choice, steps = self.device.choice, self.device.steps
        chosen = generator.binomial(points, float(choice.chance) if choice else 0.0)
        # Of those who report a bit, a grid point goes to either end by chance, and the bit is flipped by
        # chance.
        up, high = np.arange(steps + 1) / steps, float(self.device.bit.inside.chance)
        set_bits = generator.binomial(points - chosen, up * high + (1 - up) * (1 - high))
        pieces = drawn_reports(self.device.pieces, chosen, generator)
        return np.array([set_bits.sum(), chosen.sum(), *first_two(pieces)])

    def _variances(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        chance = float(self.device.choice.chance) if self.device.choice else 0.0
        bit, pieces = (part.variance(shares) for part in self.parts)
        return np.asarray((1 - chance) * bit + chance * pieces)

    def estimate(self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False) -> MeanEstimate:
        """Return the estimated mean; mostly called by an aggregator.

        Parameters
        ----------
        totals : int64 array, shape (totals,)
            An aggregator's totals.
        reports : int
            How many reports were accepted.
        simulated : bool
            Whether the randomness of any report followed from a seed.

        Returns
        -------
        MeanEstimate
            Unbiased, with its variance.
        """
        set_bits, count, total, squares = map(int, totals)
        bits = reports - count
        bit, pieces = self.parts
        reach = max(
            (part.outputs - 1) / float(own.gain * own.steps)
            for part, own in ((self.device.bit, bit), (self.device.pieces, pieces))
        )
        if not reports:
            return self._estimated(math.nan, math.inf, reach, 0, simulated)
        share = bits * bit.share(set_bits / bits) if bits else 0.0
        scatter, deviation = 0.0, 0.0
        if count:
            share += count * pieces.share(total / count)
            scatter = pieces.scatter(total / count, squares / count)
        share /= reports
        if count:
            own = pieces.sampled(count, total, squares) - scatter
            deviation = count * max(own, pieces.least(share))
        # What a bit adds follows from the mean alone, as if all numbers were alike, less how they differ.
        deviation += bits * max(bit.least(share) - scatter, bit.least(0.0))
        return self._estimated(share, deviation / reports**2, reach, reports, simulated)
