"""The common part of all estimates of shares, before and after steps that make them consistent."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from sfumato.local.frequency.variance import Array

__all__ = ["FrequencyShares"]


class FrequencyShares(ABC):
    """Estimated shares of some reports.

    Attributes
    ----------
    reports : int
        How many there were.
    raw : array
        Unbiased estimates.
    processed : array or None
        The estimates after steps of post-processing, if there were any.
    """

    __slots__ = ()

    reports: int
    raw: Array
    processed: Array | None

    @property
    def frequencies(self) -> Array:
        """The estimated shares, after whatever steps were taken."""
        return self.raw if self.processed is None else self.processed

    @property
    def counts(self) -> Array:
        """Estimates of how many respondents have each value."""
        return self.frequencies * self.reports

    @property
    @abstractmethod
    def variances(self) -> Array:
        """Estimated variances of the raw frequencies; infinite without reports."""

    @property
    def stddev(self) -> Array:
        """Estimated standard deviations of the raw frequencies."""
        return np.sqrt(self.variances)
