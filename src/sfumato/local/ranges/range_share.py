"""Shares of ranges with their intervals, and the indices of the values that a range has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, cast, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sfumato import _check
from sfumato._display import named
from sfumato.local.device.domains.bins import Bins
from sfumato.local.device.domains.categories import Domain
from sfumato.local.frequency.variance import Array
from sfumato.local.ranges.variance import Places
from sfumato.numerics.interval import Interval

__all__ = ["RangeShare", "around", "drawn_places", "range_indices"]

Value = TypeVar("Value", float, Array)

_ROUNDING: Final = 1e-12


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RangeShare(Generic[Value]):
    """The estimated share of a range, or of many.

    Parameters
    ----------
    share : float or array
        Unbiased unless a step of consistency was taken; perhaps below 0 or above 1.
    variance : float or array
        Of the raw estimate, by randomization; infinite without reports.
    reports : int
        How many were accepted.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.local import Domain, HaarHistogram
    >>> ages = HaarHistogram(epsilon=2.0, domain=Domain(range(64)))
    >>> share = ages.simulate(np.full(64, 5_000), rng=1).range(0, 31)
    >>> share.count == share.share * share.reports, bool(share.stddev == share.variance**0.5)
    (True, True)
    >>> share.interval(0.9999).lower < 0.5
    True
    """

    share: Value
    variance: Value
    reports: int

    @property
    def count(self) -> Value:
        """Estimate of how many respondents are in the range."""
        return self.share * self.reports

    @property
    def stddev(self) -> Value:
        """Estimated standard deviation of the raw estimate."""
        return cast("Value", np.sqrt(self.variance))

    def interval(self, level: float = 0.95) -> Interval[Value]:
        """Return an interval for the share, which holds it with about the stated probability.

        Parameters
        ----------
        level : float
            Wanted coverage of each, strictly between 0 and 1.

        Returns
        -------
        Interval
            Within [0, 1].

        Notes
        -----
        The estimate is a sum of independent reports, and normal for many of them; the variance is estimated.
        """
        return around(self.share, self.variance, 1 - _check.unit_interval("level", level))


def range_indices(domain: Domain | Bins, lower: Any, upper: Any) -> tuple[Places, Places]:
    """Return the first and the last indices of ranges of values, or of bins from edge to edge."""
    if isinstance(domain, Bins):
        first, last = _edges(domain, "lower", lower), _edges(domain, "upper", upper) - 1
    else:
        first, last = domain.codes(lower), domain.codes(upper)
    if first.shape != last.shape:
        _check.refuse("upper", f"be as many as lower, {len(first)}", len(last), "pass one of each")
    if (first > last).any():
        _check.refuse_state("upper", "not come before lower", "some ranges hold no value", "exchange the two")
    return first, last


def drawn_places(domain: Domain | Bins) -> list[Any]:
    """Return where values are drawn: numbers and upper edges where they are, others evenly by their names."""
    values = domain.edges[1:].tolist() if isinstance(domain, Bins) else list(domain.values)
    return values if all(isinstance(value, int | float) for value in values) else [*map(named, values)]


def around(share: Any, variance: Any, risk: float) -> Interval[Any]:
    """Return normal intervals within [0, 1], rounded outward; all of that where nothing is known."""
    known = np.isfinite(share) & np.isfinite(variance)
    half = np.where(known, -float(ndtri(risk / 2)) * np.sqrt(np.where(known, variance, 0.0)), 1.0)
    middle = np.where(known, share, 0.5)
    lower, upper = (np.clip(middle + side * (half + _ROUNDING), 0.0, 1.0) for side in (-1, 1))
    if np.ndim(share):
        return Interval(lower, upper)
    return Interval(float(lower), float(upper))


def _edges(bins: Bins, name: str, given: Any) -> NDArray[np.int64]:
    """Return the indices of edges; nothing between two edges has a share of its own."""
    wanted = np.asarray(given)
    at = np.zeros(0, np.int64)
    if wanted.dtype.kind in "iuf" and wanted.ndim == 1:
        at = np.minimum(np.searchsorted(bins.edges, wanted), len(bins)).astype(np.int64)
    if at.shape != wanted.shape or (bins.edges[at] != wanted).any():
        _check.refuse_state(name, "be edges of the bins", "others are among them", "round to edges")
    return at
