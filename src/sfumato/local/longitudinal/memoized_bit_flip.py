"""dBitFlipPM as a frequency oracle."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.longitudinal import memoized_bit_flip as client
from sfumato.local.frequency.bit_flip import BitFlip
from sfumato.local.frequency.variance import ErrorModel
from sfumato.local.longitudinal.oracle import MemoizedOracle
from sfumato.local.longitudinal.protocol import MemoizedProtocol

__all__ = ["MemoizedBitFlip"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MemoizedBitFlip(MemoizedProtocol, MemoizedOracle[client.MemoizedBitFlipRandomizer]):
    r"""For d categories, drawn once for a device, bits that are memoized: dBitFlipPM.

    Parameters
    ----------
    epsilon, domain, max_memos
        See `MemoizedOracle`; at most 2**24 categories, often ranges of a number.
    asked : int
        The d, from 1 to 4096; all categories if there are fewer.
    permanent_epsilon : float, optional
        That of a memo: above epsilon, at most 40. Left out, it is epsilon, and memos are reported as they
        are.

    Attributes
    ----------
    inner, permanent : BitFlip
        The distributions of one round, and of memos.

    Notes
    -----
    Guarantee: of one report `privacy_loss`, of all reports of one memo `permanent_loss`, of all reports of a
    device `longitudinal_loss`: at most d + 1 memos. Conditions are those of `LongitudinalProtocol`, with
    *which drawn category is true, if any* instead of values: with small d most changes are none. Where
    memos are reported as they are, the others may be seen for certain. See
    `sfumato.local.device.MemoizedBitFlipRandomizer`. Reports of a device are linked by its categories.

    References
    ----------
    Ding, Kulkarni, Yekhanin (2017), "Collecting telemetry data privately", dBitFlipPM.

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> oracle = MemoizedBitFlip(epsilon=1.0, domain=Domain(range(32)), asked=1)
    >>> oracle.longitudinal_loss().epsilon(0.0), round(oracle.variance(1), 2)
    (2.0, 29.46)
    """

    wire_name: ClassVar[str] = "memoized-bit-flip"

    asked: int = 16
    permanent_epsilon: float | None = None
    inner: BitFlip = field(init=False, repr=False, compare=False)
    permanent: BitFlip = field(init=False, repr=False, compare=False)

    def _without_memos(self, epsilon: float) -> BitFlip:
        return BitFlip(epsilon=epsilon, domain=self.domain, asked=self.asked)

    def _odds_of(self, reports: int) -> Fraction:
        odds = self.device.layers.odds(reports)
        return odds if self.asked == 1 else odds**2

    @property
    def error_model(self) -> ErrorModel:
        """How far estimates deviate; see `BitFlip`."""
        return self.inner.error_model

    @property
    def permanent_error_model(self) -> ErrorModel:
        """How far estimates from memos would deviate."""
        return self.permanent.error_model

    @property
    def _changed(self) -> tuple[Fraction, Fraction]:
        r"""Covariances of a device that changes its value: those of two values neither of which it drew.

        Notes
        -----
        They share a memo then, and the bit of a third category, which it drew, is the same: with probability
        :math:`\frac dk \frac{(k-d)(k-d-1)}{(k-1)(k-2)}`, and the variance :math:`\frac{k^2}{d^2}
        \frac{pq}{(p-q)^2}`. Elsewhere the centred bits are independent given what was drawn.
        """
        size, asked, p = len(self.domain), self.asked, self.device.layers.memo.chance
        if size < 3:
            return Fraction(0), Fraction(0)
        apart = Fraction((size - asked) * (size - asked - 1), (size - 1) * (size - 2))
        return Fraction(0), Fraction(size, asked) * apart * p * (1 - p) / (2 * p - 1) ** 2

    def shares(self, totals: NDArray[np.int64], reports: int) -> NDArray[np.float64]:
        """Return unbiased estimates of the shares from counts of bits.

        Parameters
        ----------
        totals : int64 array, shape (totals,)
            An aggregator's totals.
        reports : int
            How many reports were accepted.

        Returns
        -------
        ndarray of float64, shape (categories,)
            Unbiased estimates, in the order of the domain; NaN without reports.
        """
        return self.inner.shares(totals, reports)

    def _simulate(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        return self.inner.simulate_counts(counts, generator)

    def _memo_totals(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        return self.permanent.simulate_counts(counts, generator)

    def _reported_totals(
        self, memos: NDArray[np.int64], reports: int, generator: np.random.Generator
    ) -> NDArray[np.int64]:
        bits, ones = np.split(memos, 2)
        again = float(self.device.layers.again_chance)
        reported = generator.binomial(ones, again) + generator.binomial(bits - ones, 1 - again)
        return np.concatenate([bits, reported])
