"""1BitMean with memoization: the mean of numbers that are asked again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.local.base.respondents import seeded
from sfumato.local.device.longitudinal import memoized_mean as client
from sfumato.local.longitudinal.protocol import MemoizedProtocol
from sfumato.local.longitudinal.rounds import Rounds, checked_rounds
from sfumato.local.numeric.estimate import MeanEstimate
from sfumato.local.numeric.protocol import NumericProtocol
from sfumato.local.numeric.simulation import at_points
from sfumato.local.numeric.window import OneBitMean

__all__ = ["MemoizedOneBitMean"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MemoizedOneBitMean(
    MemoizedProtocol, NumericProtocol[client.MemoizedOneBitMeanRandomizer, MeanEstimate]
):
    r"""One bit a number, memoized for each grid point that numbers are rounded to (alpha-point rounding).

    Parameters
    ----------
    epsilon, bounds
        See `NumericProtocol`.
    steps : int
        Of that grid, from 1 to 2^14.
    max_memos : int
        Most memos that a device draws; there are ``steps + 1`` grid points.
    permanent_epsilon : float, optional
        That of a memo: above epsilon, at most 40. Left out, it is epsilon, and memos are reported as they
        are.

    Attributes
    ----------
    inner, permanent : OneBitMean
        The distributions of one round, and of memos.

    Notes
    -----
    Guarantee: of one report `privacy_loss`, of all reports of one memo `permanent_loss`, of all reports of a
    device `longitudinal_loss`, by default at most two memos. Conditions are those of `LongitudinalProtocol`,
    with *rounded grid points* instead of values; see `sfumato.local.device.MemoizedOneBitMeanRandomizer`. In
    one round it errs as `sfumato.local.OneBitMean`; the memos' part of the error is the same in every round
    for devices whose grid point stays.

    References
    ----------
    Ding, Kulkarni, Yekhanin (2017), "Collecting telemetry data privately".

    Examples
    --------
    >>> protocol = MemoizedOneBitMean(epsilon=1.0, bounds=(0.0, 24.0))
    >>> days = protocol.randomize_rounds([[7.5] * 50_000, [8.0] * 50_000], rng=1)
    >>> found = []
    >>> for day in days:
    ...     aggregator = protocol.aggregator()
    ...     _ = aggregator.add_batch(day)
    ...     found.append(aggregator.estimate())
    >>> bool(abs(protocol.rounds(found).mean().values[0] - 7.75) < 0.6)
    True
    """

    wire_name: ClassVar[str] = "memoized-one-bit-mean"

    steps: int = 1
    max_memos: int = 4
    permanent_epsilon: float | None = None
    inner: OneBitMean = field(init=False, repr=False, compare=False)
    permanent: OneBitMean = field(init=False, repr=False, compare=False)

    def _without_memos(self, epsilon: float) -> OneBitMean:
        return OneBitMean(epsilon=epsilon, bounds=self.bounds)

    def _odds_of(self, reports: int) -> Fraction:
        return self.device.layers.odds(reports)

    def _variances(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.inner.moments.variance(shares)

    def _of_this(self, estimate: MeanEstimate) -> bool:
        return estimate.bounds == self.bounds and estimate.loss == self.privacy_loss

    def rounds(self, estimates: Sequence[MeanEstimate]) -> Rounds:
        """Return the estimates of rounds in which the same devices were asked, together.

        Parameters
        ----------
        estimates : sequence of MeanEstimate
            One for each round, of this protocol.

        Returns
        -------
        Rounds
            With the part of the variances that the memos have in common.
        """
        held = checked_rounds(estimates, MeanEstimate, self._of_this, "protocol")
        variances = np.array([[one.variance] for one in held])
        reports = np.array([[one.reports] for one in held])
        reported, memo = (
            float(1 / (2 * one - 1)) for one in (self.device.layers.chance, self.device.layers.memo.chance)
        )
        fresh = (
            (reported**2 - memo**2) * ((self.bounds[1] - self.bounds[0]) / 2) ** 2 / np.maximum(reports, 1)
        )
        return Rounds(
            values=np.array([[one.mean] for one in held]),
            variances=variances,
            permanent=np.where(reports > 0, np.maximum(variances - fresh, 0.0), 0.0),
            limits=self.bounds,
            loss=self.longitudinal_loss(),
            simulated=any(one.simulated for one in held),
        )

    def _simulate(self, points: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        return self._reported(self._memos(points, generator), int(points.sum()), generator)

    def _memos(self, points: NDArray[np.int64], generator: np.random.Generator) -> int:
        """Draw how many memos are 1, given how many devices are at each grid point."""
        memo, shares = float(self.device.layers.memo.chance), np.arange(self.steps + 1) / self.steps
        return int(generator.binomial(points, shares * memo + (1 - shares) * (1 - memo)).sum())

    def _reported(self, memos: int, reports: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw the totals of one report of each memo, given how many are 1."""
        again = float(self.device.layers.again_chance)
        ones = generator.binomial(memos, again) + generator.binomial(reports - memos, 1 - again)
        return np.array([ones, ones])

    def simulate_rounds(
        self,
        numbers: ArrayLike,
        counts: ArrayLike | None = None,
        rounds: int = 1,
        rng: int | np.random.Generator = 0,
    ) -> list[MeanEstimate]:
        """Draw the estimates of several rounds in which nobody's number changes.

        Parameters
        ----------
        numbers, counts
            See `simulate_counts`.
        rounds : int
            At least 1.
        rng
            See `simulate_counts`.

        Returns
        -------
        list of MeanEstimate
            One for each round, to pass to `rounds`.
        """
        times, generator = _check.integer("rounds", rounds, minimum=1), seeded(rng)
        points = at_points(self.device, numbers, counts, generator)
        n, memos = int(points.sum()), self._memos(points, generator)
        drawn = (self._reported(memos, n, generator) for _ in range(times))
        return [self.estimate(totals, n, simulated=True) for totals in drawn]
