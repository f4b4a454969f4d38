"""The risks of re-identification of a table, computed when they are asked for."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.risk.population_models import PopulationUniqueness, population_uniqueness
from sfumato.anonymity.risk.reidentification import (
    AttackerRisk,
    journalist_risk,
    prosecutor_risk,
    uniqueness,
)

__all__ = ["Risks"]


@final
class Risks:
    """The risks of re-identification of a table.

    Parameters
    ----------
    sizes : int64 array
        The rows of each class.
    population_sizes : int64 array or None
        The people of the population in each class.
    population_size : int or None
        The people of the population.

    Examples
    --------
    >>> Risks(np.array([1, 3]), None, None).uniqueness
    0.25
    """

    def __init__(
        self,
        sizes: NDArray[np.int64],
        population_sizes: NDArray[np.int64] | None,
        population_size: int | None,
    ) -> None:
        self._sizes = sizes
        self._population_sizes = population_sizes
        self._population_size = population_size

    @property
    def uniqueness(self) -> float:
        """The fraction of rows that are alone in their class."""
        return uniqueness(self._sizes)

    @property
    def prosecutor(self) -> AttackerRisk:
        """From an attacker who knows that the person is in the table."""
        return prosecutor_risk(self._sizes)

    @property
    def journalist(self) -> AttackerRisk:
        """From an attacker who does not; without a population table the prosecutor's, which is no lower."""
        if self._population_sizes is None:
            return self.prosecutor
        return journalist_risk(self._sizes, self._population_sizes)

    @property
    def marketer(self) -> float:
        """The expected fraction of rows that an attacker on all of them gets right."""
        return self.journalist.average

    @cached_property
    def population_uniqueness(self) -> PopulationUniqueness | None:
        """Estimates of who is unique in the population; None where its size is not known."""
        if self._population_size is None:
            return None
        return population_uniqueness(self._sizes, self._population_size)

    def to_dict(self) -> dict[str, Any]:
        """Return all risks, by name.

        Returns
        -------
        dict of str to object
        """
        estimated = self.population_uniqueness
        return {
            "uniqueness": self.uniqueness,
            "prosecutor": dataclasses.asdict(self.prosecutor),
            "journalist": dataclasses.asdict(self.journalist),
            "marketer": self.marketer,
            "population_uniqueness": None if estimated is None else dataclasses.asdict(estimated),
        }
