"""Draw what any number of respondents would report, all at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.local.base.respondents import seeded, whole_counts

__all__ = ["SimulatedCounts"]

Told_co = TypeVar("Told_co", covariant=True)


class SimulatedCounts(ABC, Generic[Told_co]):
    """A protocol of one category each, whose totals are drawn without a report."""

    __slots__ = ()

    @property
    @abstractmethod
    def _categories(self) -> int:
        """How many there are."""

    @abstractmethod
    def _simulate(self, counts: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw totals, given how many respondents are in each category."""

    @abstractmethod
    def estimate(self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False) -> Told_co:
        """Return what the totals estimate."""

    def simulate_counts(
        self, true_counts: ArrayLike, rng: int | np.random.Generator = 0
    ) -> NDArray[np.int64]:
        """Draw an aggregator's totals at once, distributed as if everybody reported, whatever their number.

        Parameters
        ----------
        true_counts : array of int
            How many respondents are in each category of the domain.
        rng : int or numpy Generator
            A seed: this simulates, for planning.

        Returns
        -------
        ndarray of int64
            `totals` numbers.
        """
        return self._simulate(self.checked_counts(true_counts), seeded(rng))

    def checked_counts(self, true_counts: ArrayLike) -> NDArray[np.int64]:
        """Return how many respondents are in each category, as whole numbers; refuse others."""
        return whole_counts("true_counts", true_counts, self._categories, "pass one per category")

    def simulate(self, true_counts: ArrayLike, rng: int | np.random.Generator = 0) -> Told_co:
        """Return an estimate as it might come of so many respondents; see `simulate_counts`.

        Parameters
        ----------
        true_counts : array of int
            How many respondents are in each category of the domain.
        rng : int or numpy Generator
            A seed: this simulates, for planning.

        Returns
        -------
        estimate
            Marked as simulated.
        """
        totals = self.simulate_counts(true_counts, rng)
        return self.estimate(totals, int(np.sum(true_counts)), simulated=True)
