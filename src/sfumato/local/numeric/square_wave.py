r"""The square wave: whole distributions of numbers.

*Estimate*: the distribution that makes the reports most likely, by expectation maximization. Of d grid points
and N reports the distribution of the reports is a matrix with two values, of which one lies on windows: it is
multiplied by running sums, in N + d steps instead of N d.

*Means* of a function f over the grid points are estimated without bias by a sum of weights of reports. Let
:math:`P(y \mid k)` be the distribution of reports. Numbers :math:`a_y` with :math:`\sum_y P(y \mid k)\, a_y =
f_k` for every k make :math:`a_Y` an unbiased report of :math:`f_k`, whatever the distribution is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_toeplitz

from sfumato import _check
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.numeric import window as client
from sfumato.local.device.numeric.window import WindowRandomizer
from sfumato.local.frequency.variance import Array
from sfumato.local.numeric.estimate import MeanEstimate
from sfumato.local.numeric.simulation import drawn_reports, first_two
from sfumato.local.numeric.window import WindowProtocol

__all__ = ["DistributionEstimate", "SquareWave", "most_likely", "unbiased_weights"]


def unbiased_weights(device: WindowRandomizer, wanted: Array) -> Array:
    r"""Return numbers for reports whose means are those wanted, and with the least squares.

    Parameters
    ----------
    device : WindowRandomizer
    wanted : array, shape (steps + 1,)
        The f.

    Returns
    -------
    array, shape (outputs,)

    Notes
    -----
    A chance is :math:`\phi` plus, in the window, :math:`\delta > 0`. So the matrix of products of two grid
    points' distributions is :math:`\delta^2 T + c 1 1^T`, T holding how many reports two windows share,
    :math:`\max(0, w - |k - l|)`, and :math:`c = \phi^2 N + 2 \phi \delta w`. The windows are linearly
    independent, as each begins one report later than the last: T is positive definite, and the numbers with
    the least squares are :math:`a = P b`, :math:`(\delta^2 T + c 1 1^T) b = f` (Levinson's recursion, and the
    rank one after it). A constant has itself as its mean: of all :math:`a(f - z) + z` that with the least
    squares of the first part is taken.
    """
    numbers, even = _least(device, wanted), _least(device, np.ones(len(wanted)))
    middle = float(numbers @ even) / float(even @ even)
    return np.asarray(numbers - middle * even + middle)


def _least(device: WindowRandomizer, wanted: Array) -> Array:
    """Return the numbers with the least squares, and the means that are wanted."""
    window, points = device.window, device.steps + 1
    near, far = float(device.inside.chance) / window, float(1 - device.inside.chance) / device.steps
    lift = near - far
    shared = np.maximum(0.0, window - np.arange(points))
    found, ones = (solve_toeplitz(shared, part) for part in (wanted, np.ones(points)))
    common = far * far * device.outputs + 2 * far * lift * window
    found = (found - ones * (common * found.sum() / (lift * lift + common * ones.sum()))) / lift**2
    sums = np.concatenate([[0.0], np.cumsum(found)])
    reports = np.arange(device.outputs)
    ends, starts = np.minimum(reports, device.steps) + 1, np.maximum(reports - window + 1, 0)
    return np.asarray(far * found.sum() + lift * (sums[ends] - sums[starts]))


_MAX_ROUNDS: Final = 20_000


def most_likely(counts: Array, device: WindowRandomizer, *, smooth: bool, tolerance: float) -> Array:
    """Return shares of the grid points under which the reports are nearly most likely.

    Parameters
    ----------
    counts : array, shape (outputs,)
        How often each report came; at least one did.
    device : WindowRandomizer
        Its distribution is what is inverted.
    smooth : bool
        Whether shares are averaged with their neighbors (1, 2, 1) after each round: less noise, less detail.
    tolerance : float
        Rounds end when the log-likelihood gains less than this.

    Returns
    -------
    array, shape (steps + 1,)
        Non-negative, with sum 1.
    """
    window, total = device.window, float(counts.sum())
    near, far = (
        float(device.inside.chance) / window,
        float(1 - device.inside.chance) / device.steps,
    )
    ends = np.minimum(np.arange(device.outputs), device.steps) + 1
    starts = np.maximum(np.arange(device.outputs) - window + 1, 0)
    shares = np.full(device.steps + 1, 1 / (device.steps + 1))
    sums, backs = np.zeros(device.steps + 2), np.zeros(device.outputs + 1)
    before = -np.inf
    for _ in range(_MAX_ROUNDS):
        np.cumsum(shares, out=sums[1:])
        distribution = far + (near - far) * np.maximum(sums[ends] - sums[starts], 0.0)
        reached = float(counts @ np.log(distribution))
        if reached - before < tolerance:
            break
        before = reached
        ratios = counts / (total * distribution)
        np.cumsum(ratios, out=backs[1:])
        within = np.maximum(backs[window:] - backs[: device.steps + 1], 0.0)
        shares = shares * (far * backs[-1] + (near - far) * within)
        if smooth:
            wide = np.pad(shares, 1, mode="edge")
            shares = (wide[:-2] + 2 * wide[1:-1] + wide[2:]) / 4
        shares = shares / shares.sum()
    return np.asarray(shares)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistributionEstimate:
    """The distribution of the respondents' numbers over the grid points.

    Parameters
    ----------
    mean : MeanEstimate
        Of the numbers, unbiased and with an interval; it does not rest on the distribution.
    counts : array of int
        How often each report came.
    device : SquareWave
        The client half, whose distribution is inverted.

    Notes
    -----
    `shares` are a most likely distribution: they never fall below 0, are biased, and have no intervals; their
    error is largest where the distribution has steps or peaks that are narrower than the window.
    `share_between` is unbiased and has an interval, at the price of more error.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.local import SquareWave
    >>> protocol = SquareWave(epsilon=2.0, bounds=(0.0, 100.0), steps=20)
    >>> estimate = protocol.simulate(np.arange(100), np.full(100, 1000), rng=1)
    >>> round(float(estimate.shares().sum()), 6), float(estimate.points[-1])
    (1.0, 100.0)
    >>> 40 <= estimate.quantile(0.5) <= 60
    True
    """

    mean: MeanEstimate
    counts: NDArray[np.int64]
    device: client.SquareWaveRandomizer

    @property
    def points(self) -> Array:
        """The numbers that the shares are of, from the lower bound to the upper one."""
        return np.linspace(*self.device.bounds, self.device.steps + 1)

    def shares(self, *, smooth: bool = True) -> Array:
        """Return the share of the respondents at each of the points.

        Parameters
        ----------
        smooth : bool
            Whether neighbors are averaged in each round: better for distributions without narrow peaks.

        Returns
        -------
        ndarray of float64, shape (points,)
            A distribution over `points`.
        """
        if not self.mean.reports:
            _check.refuse("reports", "be at least 1 for a distribution", self.mean.reports, "collect some")
        tolerance = 1e-3 if smooth else 1e-3 * math.exp(min(self.device.epsilon, 10.0))
        return most_likely(self.counts.astype(np.float64), self.device, smooth=smooth, tolerance=tolerance)

    def share_between(self, lower: float, upper: float) -> MeanEstimate:
        r"""Return the share of the respondents from one number to another, unbiased and with an interval.

        Parameters
        ----------
        lower, upper : float
            Within the bounds; the points from the one to the other count.

        Returns
        -------
        MeanEstimate
            Its ``mean`` is the share, raw; its intervals lie within [0, 1].

        Notes
        -----
        The target is the share of the respondents' numbers as their devices rounded them to points. Each
        report y counts as :math:`a_y` (`sfumato.local.numeric.square_wave`), whose mean is 1 for points
        in the range and 0 for others, whatever the distribution. So the variance is :math:`\frac1n
        (\overline{a^2} - s)` with the share s, and the reports estimate both. It grows with the number of
        steps: take few. ``"exact"`` intervals hold for any number of reports, by Hoeffding's inequality.
        """
        smallest, largest = (_check.finite(name, end) for name, end in (("lower", lower), ("upper", upper)))
        within = (self.points >= smallest) & (self.points <= largest)
        if not within.any():
            remedy = "widen the range, or take more steps"
            _check.refuse("lower", "be below upper, with one of the points between them", lower, remedy)
        weights = unbiased_weights(self.device, within.astype(np.float64))
        reports, share, variance = self.mean.reports, math.nan, math.inf
        if reports:
            share = float(weights @ self.counts) / reports
            square = float((weights * weights) @ self.counts) / reports
            variance = max(square - min(max(share, 0.0), 1.0), 0.0) / reports
        return replace(
            self.mean, mean=share, variance=variance, bounds=(0.0, 1.0), reach=float(np.ptp(weights))
        )

    def quantile(self, share: float, *, smooth: bool = True) -> float:
        """Return the smallest point up to which at least a proportion of the respondents lies.

        Parameters
        ----------
        share : float
            The proportion, strictly between 0 and 1.
        smooth : bool
            See `shares`.

        Returns
        -------
        float
            One of `points`.
        """
        wanted = _check.unit_interval("share", share)
        point = int(np.searchsorted(np.cumsum(self.shares(smooth=smooth)), wanted))
        return float(self.points[min(point, self.device.steps)])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SquareWave(WindowProtocol[client.SquareWaveRandomizer, DistributionEstimate]):
    r"""A number near the truth, in a window that is most informative about the whole distribution.

    Parameters
    ----------
    epsilon, bounds
        See `NumericProtocol`.
    steps : int
        Of the grid between the bounds, up to 2^12; one grid point more than that has a share.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see
    `sfumato.local.device.SquareWaveRandomizer`.

    References
    ----------
    Li, Wang, Lopuhaä-Zwakenberg, Li, Skoric (2020), "Estimating numerical distributions under local
    differential privacy": square wave, EM and EMS.

    Examples
    --------
    >>> protocol = SquareWave(epsilon=2.0, bounds=(0.0, 100.0), steps=100)
    >>> aggregator = protocol.aggregator()
    >>> aggregator.add_batch(protocol.randomize_batch(np.arange(50_000) % 50, rng=1))
    50000
    >>> estimate = aggregator.estimate()
    >>> bool(abs(estimate.quantile(0.5) - 25) < 5), bool(estimate.mean.interval(0.99).lower < 24.5)
    (True, True)
    """

    wire_name: ClassVar[str] = "square-wave"

    steps: int = 256

    @property
    def totals(self) -> int:
        """One for each possible report."""
        return self.device.outputs

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Count each possible report.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Well-formed records, one a row.

        Returns
        -------
        ndarray of int64, shape (totals,)
            What they add to the aggregator's totals.
        """
        reports = self.device.layout.unpack(records).astype(np.int64)
        return np.bincount(reports, minlength=self.device.outputs)

    def _simulate(self, points: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        return drawn_reports(self.device, points, generator)

    def estimate(
        self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False
    ) -> DistributionEstimate:
        """Return the estimated distribution; mostly called by an aggregator.

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
        DistributionEstimate
            With the unbiased mean.
        """
        mean = self._mean(*first_two(totals), reports, simulated)
        return DistributionEstimate(mean=mean, counts=totals, device=self.device)
