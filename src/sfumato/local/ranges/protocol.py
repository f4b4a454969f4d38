"""What protocols of ranges share: one distribution from the levels of a tree."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.local.device.domains.bins import Bins
from sfumato.local.device.domains.categories import Domain
from sfumato.local.device.ranges.levels import LevelsRandomizer
from sfumato.local.frequency.oracle import Oracle
from sfumato.local.frequency.variance import Array
from sfumato.local.ranges.estimate import RangeEstimate
from sfumato.local.ranges.levels import LevelsProtocol
from sfumato.local.ranges.variance import RangeErrorModel

__all__ = ["RangeProtocol", "checked_oracle", "checked_size", "range_ends"]

Device = TypeVar("Device", bound=LevelsRandomizer)

_MAX_RANGES: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeProtocol(LevelsProtocol[Device, RangeEstimate], Generic[Device]):
    """A protocol that estimates the shares of ranges of ordered values.

    Parameters
    ----------
    epsilon : float
        Bound on the loss of each report, from above 0 to 40.
    domain : Domain or Bins
        The values in their order, or bins of numbers; from 2 to 2^24.
    weights : tuple of float, optional
        How likely each level is drawn, in proportion, the coarsest first; all alike if left out.

    Attributes
    ----------
    device : LevelsRandomizer
        The client half, which a device makes again from ``device.specification()``.
    """

    domain: Domain | Bins

    @abstractmethod
    def error_model(self, reports: Sequence[float]) -> RangeErrorModel:
        """Return how far estimates deviate with so many reports of each level."""

    @abstractmethod
    def _leaves(self, totals: list[NDArray[np.int64]], asked: list[int]) -> Array:
        """Return unbiased estimates of the values' shares from the levels' totals and numbers of reports."""

    def estimate(self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False) -> RangeEstimate:
        """Return the estimate from totals; mostly called by an aggregator."""
        asked, size = self.reports_of_parts(totals), len(self.domain)
        return RangeEstimate(
            domain=self.domain,
            reports=reports,
            raw=self._leaves(self.pieces(totals), asked) if reports else np.full(size, np.nan),
            error_model=self.error_model(asked),
            loss=self.privacy_loss,
            simulated=simulated,
        )

    def variance(self, n: int, first: Any, last: Any, shares: ArrayLike | None = None) -> Array:
        """Return the variances of the estimates of ranges from ``n`` reports.

        Parameters
        ----------
        n : int
            At least 1, distributed over the levels as is expected.
        first, last : array of int
            Indices of the first and the last value of each range, counted from 0.
        shares : array, optional
            Of all values; even ones if left out.

        Returns
        -------
        array
            One for each range.
        """
        count, size = _check.integer("n", n, minimum=1), len(self.domain)
        begin, end = (np.atleast_1d(whole_indices(*one)) for one in (("first", first), ("last", last)))
        if begin.shape != end.shape or not ((begin >= 0) & (begin <= end) & (end < size)).all():
            rule = f"be indices from 0 to {size - 1}, none before its first"
            _check.refuse_type("last", rule, end, "count indices from 0")
        reported = np.full(size, 1 / size) if shares is None else np.asarray(shares, float)
        if reported.shape != (size,) or not (reported >= 0).all() or abs(reported.sum() - 1) > 1e-9:
            _check.refuse_type(
                "shares",
                f"be {size} shares with sum 1",
                reported,
                "divide by the sum",
            )
        reach = np.minimum(np.concatenate([[0.0], np.cumsum(reported)]), 1.0)
        reach[-1] = 1.0
        error_model = self.error_model([count * float(chance) for chance in self.device.chances])
        return error_model.variance(begin, end, reach)

    def expected_error(self, n: int, length: int | None = None) -> float:
        """Return the root mean squared error of ranges' shares, where all values are alike frequent.

        Parameters
        ----------
        n : int
            How many people report.
        length : int, optional
            Values of each range; a mean over ranges of all lengths if left out.

        Notes
        -----
        The mean is over all ranges, or over 4096 distributed among them where there are more.
        """
        return float(np.sqrt(self.variance(n, *range_ends(len(self.domain), length)).mean()))


def checked_size(domain: object) -> int:
    """Return how many values an ordered domain has, or refuse what is none."""
    if not isinstance(domain, Domain | Bins):
        remedy = "pass Domain(values), or Bins(edges) for numbers"
        _check.refuse_type("domain", "be a Domain or Bins", domain, remedy)
    return len(domain)


def checked_oracle(kind: object) -> None:
    """Refuse what is neither None nor the class of a frequency oracle."""
    if kind is not None and not (isinstance(kind, type) and issubclass(kind, Oracle)):
        remedy = "pass a class such as OptimalLocalHashing"
        _check.refuse("oracle", "be the class of a frequency oracle", kind, remedy)


def whole_indices(name: str, given: ArrayLike) -> NDArray[np.int64]:
    """Return indices as whole numbers; what would have to be rounded is refused."""
    try:
        found = np.asarray(given)
    except ValueError:  # ragged
        found = np.empty(1, np.object_)
    if found.size and found.dtype.kind not in "iu":
        _check.refuse_type(name, "be whole numbers", found, "count indices from 0")
    return found.astype(np.int64)


def range_ends(size: int, length: int | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return first and last indices of the ranges of a length, or of all lengths, or of 4096 among them."""
    if length is not None:
        if _check.integer("length", length, minimum=1) > size:
            _check.refuse("length", f"be at most {size}", length, "leave it out for all")
        starts = size - length + 1
        first = np.arange(starts) if starts <= _MAX_RANGES else np.arange(_MAX_RANGES) * starts // _MAX_RANGES
        return first, first + length - 1
    if size * (size + 1) // 2 <= _MAX_RANGES:
        one, other = np.triu_indices(size)
        return one.astype(np.int64), other.astype(np.int64)
    # A lattice of two even sequences: indices of pairs, all equally likely.
    at = np.arange(_MAX_RANGES)
    one, other = at * size // _MAX_RANGES, ((at * 0.6180339887498949) % 1.0 * size).astype(np.int64)
    return np.minimum(one, other), np.maximum(one, other)
