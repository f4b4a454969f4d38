"""The common part of all estimates of shares, before and after steps that make them consistent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Final

import numpy as np

from sfumato._display import html_table, named, shown
from sfumato.local.base.report_facts import report_facts
from sfumato.local.frequency.variance import Array
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["FrequencyShares", "TabledShares"]

_SHOWN: Final = 20


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


class TabledShares(FrequencyShares):
    """Shares of values that are the rows of a table, which a notebook shows."""

    __slots__ = ()

    loss: PrivacyLoss
    simulated: bool

    def _repr_html_(self) -> str:
        columns = self.to_dict()
        names, values, lower, upper = (list(column) for column in list(columns.values())[:4])
        order = list(range(len(names)))
        if "category" in columns:  # without an order of their own
            order.sort(key=lambda at: -values[at])
        rows = [
            (named(names[at]), (shown(float(values[at])), f"[{lower[at]:.4g}, {upper[at]:.4g}]"))
            for at in order[:_SHOWN]
        ]
        left = len(names) - len(rows)
        return html_table(
            f"Estimated shares, of {self.reports:,} reports",
            ("", "share"),
            rows,
            more=f"and {left:,} more" if left else "",
            facts={"in brackets": "95 % intervals"} | report_facts(self.loss, simulated=self.simulated),
        )

    @abstractmethod
    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return columns for a table: the values, their frequencies, and lower and upper ends.

        Parameters
        ----------
        level : float
            Coverage of each interval.
        """
