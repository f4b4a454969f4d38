"""The base of frequency oracles: the client half, its price, and what the reports estimate."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.base.protocol import LocalProtocol, log_odds
from sfumato.local.base.simulated_counts import SimulatedCounts
from sfumato.local.device.base.randomizer import CategoricalRandomizer
from sfumato.local.device.domains.categories import Domain
from sfumato.local.frequency.estimate import Estimate
from sfumato.local.frequency.support import Support
from sfumato.local.frequency.variance import ErrorModel

__all__ = ["Oracle", "SupportOracle"]

Device = TypeVar("Device", bound=CategoricalRandomizer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle(SimulatedCounts[Estimate], LocalProtocol[Device, Estimate], Generic[Device]):
    """A protocol that estimates the shares of categories.

    Parameters
    ----------
    epsilon : float
        Bound on the loss of each report, from above 0 to 40.
    domain : Domain
        The categories.

    Attributes
    ----------
    device : CategoricalRandomizer
        The client half, which a device makes again from ``device.specification()``.

    Notes
    -----
    A subclass makes the device, names its loss, counts records and says what counts estimate. It is never
    asked about records that the device could not have sent: the aggregator refuses those.

    Examples
    --------
    Every oracle has the same methods, so that code works with any of them:

    >>> from sfumato import local
    >>> domain = local.Domain(["red", "green", "blue"])
    >>> oracle: local.Oracle = local.SubsetSelection(epsilon=1.0, domain=domain)
    >>> round(oracle.variance(10_000) ** 0.5, 3)
    0.011
    >>> oracle.simulate([6000, 3000, 1000], rng=1).reports
    10000
    """

    epsilon: float
    domain: Domain
    device: Device = field(init=False, repr=False, compare=False)

    @property
    @abstractmethod
    def error_model(self) -> ErrorModel:
        """How far estimates deviate."""

    @property
    def totals(self) -> int:
        """How many whole numbers an aggregator stores."""
        return len(self.domain)

    @abstractmethod
    def shares(self, totals: NDArray[np.int64], reports: int) -> NDArray[np.float64]:
        """Return unbiased estimates of the shares.

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

    @property
    def _categories(self) -> int:
        return len(self.domain)

    def _bound(self, odds: Fraction) -> float:
        """Return the epsilon of the odds that are drawn."""
        return log_odds(odds, self.epsilon)

    def estimate(self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False) -> Estimate:
        """Return what the totals estimate; mostly called by an aggregator.

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
        Estimate
            The shares of the categories.
        """
        return Estimate(
            domain=self.domain,
            reports=reports,
            raw=self.shares(totals, reports),
            error_model=self.error_model,
            loss=self.privacy_loss,
            simulated=simulated,
        )

    def variance(self, n: int, frequency: float = 0.0) -> float:
        """Return the variance of a share's estimate from ``n`` reports, if the share is ``frequency``.

        Parameters
        ----------
        n : int
            Reports, at least 1.
        frequency : float
            The true share, from 0 to 1; 0 for a rare category.

        Returns
        -------
        float
            By randomization alone; its root is a standard error in units of shares.
        """
        count = _check.integer("n", n, minimum=1)
        share = np.array([_check.share("frequency", frequency)])
        return float(self.error_model.variance(share)[0]) / count


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportOracle(Oracle[Device]):
    """An oracle whose reports support values; see `sfumato.local.frequency.support`."""

    added: ClassVar[tuple[int, int]] = (0, 1)
    """What one report adds to a total at least and at most."""

    @property
    @abstractmethod
    def support(self) -> Support:
        """How likely reports support values, exactly."""

    @property
    def error_model(self) -> ErrorModel:
        """How far estimates deviate: as the support says."""
        return self.support

    def shares(self, totals: NDArray[np.int64], reports: int) -> NDArray[np.float64]:
        """Return unbiased estimates of the shares from counts of supports."""
        return self.support.shares(totals, reports)

    def _simulate(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        return self.support.simulate(counts, generator)
