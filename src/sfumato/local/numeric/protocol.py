"""The base of protocols for numbers: the client half, its price, and the estimate from reports."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.local.base.protocol import LocalProtocol
from sfumato.local.base.respondents import seeded
from sfumato.local.device.numeric.randomizer import NumericRandomizer
from sfumato.local.numeric.estimate import MeanEstimate
from sfumato.local.numeric.simulation import at_points

__all__ = ["NumericProtocol"]

Device = TypeVar("Device", bound=NumericRandomizer)
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericProtocol(LocalProtocol[Device, Result], Generic[Device, Result]):
    """A protocol that estimates a mean, or more, of numbers between two bounds.

    Parameters
    ----------
    epsilon : float
        Bound on the loss of each report, from above 0 to 40.
    bounds : tuple of float
        Bounds of the numbers that can be true; public, and never taken from the data.

    Attributes
    ----------
    device : NumericRandomizer
        The client half, which a device makes again from ``device.specification()``.
    """

    epsilon: float
    bounds: tuple[float, float]
    device: Device = field(init=False, repr=False, compare=False)

    @property
    def totals(self) -> int:
        """How many whole numbers an aggregator stores."""
        return 2

    @abstractmethod
    def _variances(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the variance of one report's part for numbers and results in shares of the way."""

    def variance(self, n: int, value: float | None = None) -> float:
        """Return the variance of the mean from ``n`` reports, in squared units of the numbers.

        Parameters
        ----------
        n : int
            At least 1.
        value : float, optional
            What all numbers are; that with the largest variance if left out.
        """
        count = _check.integer("n", n, minimum=1)
        lower, upper = self.bounds
        if value is None:
            shares = np.arange(2 * self.device.steps + 1) / (2 * self.device.steps)
        elif lower <= _check.finite("value", value) <= upper:
            shares = np.array([(value - lower) / (upper - lower)])
        else:
            _check.refuse("value", f"be from {lower} to {upper}", value, "widen the bounds")
        return float(self._variances(shares).max()) * (upper - lower) ** 2 / count

    @abstractmethod
    def _simulate(self, points: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw totals, given how many respondents are at each grid point."""

    def simulate_counts(
        self, numbers: ArrayLike, counts: ArrayLike | None = None, rng: int | np.random.Generator = 0
    ) -> NDArray[np.int64]:
        """Draw an aggregator's totals at once: distributed as if everybody reported, whatever their number.

        Parameters
        ----------
        numbers : array
            True numbers, within the bounds.
        counts : array of int, optional
            How many respondents have each number; one if left out.
        rng : int or numpy Generator
            A seed: this simulates, for planning.

        Returns
        -------
        ndarray of int64
            `totals` numbers.
        """
        generator = seeded(rng)
        return self._simulate(at_points(self.device, numbers, counts, generator), generator)

    def simulate(
        self, numbers: ArrayLike, counts: ArrayLike | None = None, rng: int | np.random.Generator = 0
    ) -> Result:
        """Return an estimate as it might come of so many respondents; see `simulate_counts`."""
        generator = seeded(rng)
        points = at_points(self.device, numbers, counts, generator)
        return self.estimate(self._simulate(points, generator), int(points.sum()), simulated=True)

    def _estimated(
        self, share: float, variance: float, reach: float, reports: int, simulated: bool
    ) -> MeanEstimate:
        """Return an estimate of the mean from one in shares of the way between the bounds."""
        lower, upper = self.bounds
        return MeanEstimate(
            reports=reports,
            mean=lower + share * (upper - lower),
            variance=variance * (upper - lower) ** 2,
            bounds=self.bounds,
            reach=reach * (upper - lower),
            loss=self.privacy_loss,
            simulated=simulated,
        )
