"""Count reports in any order and any number of pieces, in constant memory, whatever bytes arrive."""

from __future__ import annotations

from typing import Any, Final, Generic, Protocol, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.local.base.base_aggregator import REASONS, Intake
from sfumato.local.device.base.randomizer import Randomizer
from sfumato.local.device.base.record_layout import Records

__all__ = ["REASONS", "Aggregator", "Counted"]

Result_co = TypeVar("Result_co", covariant=True)


_MAX: Final = 1 << 62
"""Totals stay below it, either way: two of them add up without overflow."""
_ADDED: Final = (-(1 << 50), 1 << 50)
"""What one report adds to a total at least and at most, where a protocol does not say. None stands for sums
modulo 2^64, of which any may be."""


class Counted(Protocol[Result_co]):
    """What can be counted: an `Oracle`, or another protocol whose reports add up to whole numbers."""

    @property
    def device(self) -> Randomizer:
        """The client half."""

    @property
    def totals(self) -> int:
        """How many whole numbers an aggregator stores."""

    def tally(self, records: Records) -> NDArray[np.int64]:
        """Return what some records add to them.

        Parameters
        ----------
        records : uint8 array, shape (records, width)
            Well-formed records, one a row.

        Returns
        -------
        ndarray of int64, shape (totals,)
            What they add to the aggregator's totals.
        """

    def estimate(self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False) -> Result_co:
        """Return what the totals estimate.

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
        object
            The protocol's estimate.
        """


@final
class Aggregator(Intake[Counted[Result_co]], Generic[Result_co]):
    """The totals of the reports to one oracle; whole numbers, so that merging is exactly associative.

    Parameters
    ----------
    oracle : Oracle or another protocol
        Made by ``oracle.aggregator()``.

    Notes
    -----
    Whatever comes is counted as accepted or as refused, and never raises; see
    `sfumato.local.base.base_aggregator.Intake`.

    Examples
    --------
    Two servers count half of the reports each, and merge their states:

    >>> from sfumato import local
    >>> oracle = local.RandomizedResponse(epsilon=2.0, domain=local.Domain(["red", "green", "blue"]))
    >>> first, second = oracle.aggregator(), oracle.aggregator()
    >>> first.add_batch(oracle.randomize_batch(["red"] * 500, rng=1))
    500
    >>> second.add_batch(oracle.randomize_batch(["blue"] * 300, rng=2))
    300
    >>> first.merge(second.to_bytes()).accepted
    800
    >>> int(first.totals.sum())
    800
    """

    __slots__ = ("_totals",)

    def __init__(self, oracle: Counted[Result_co]) -> None:
        super().__init__(oracle)
        try:
            self._totals = np.zeros(oracle.totals, np.int64)
        except (MemoryError, ValueError):  # ValueError: more than an array may have
            rule = "have totals that fit into memory"
            _check.refuse("oracle", rule, oracle.totals, "ask about fewer categories")

    @property
    def totals(self) -> NDArray[np.int64]:
        """A copy of the totals."""
        return self._totals.copy()

    @property
    def _added(self) -> tuple[int, int] | None:
        found: tuple[int, int] | None = getattr(self._oracle, "added", _ADDED)
        return found

    def _keep(self, records: Records) -> None:
        self._totals += self._oracle.tally(records)

    def _join(self, other: Any) -> None:
        joined = self._totals + other.totals
        if len(joined) and self._added and max(int(joined.max()), -int(joined.min())) >= _MAX:
            raise ParameterError("other must leave all totals below 2**62, got more; it is no honest state")
        self._totals = joined

    def _state(self) -> tuple[int, bytes]:
        return len(self._totals), self._totals.astype("<i8").tobytes()

    def _possible(self, accepted: int, state: bytes) -> bool:
        if len(state) % 8 or not self._added:
            return True  # that it is not whole is checked elsewhere
        smallest, largest = self._added
        totals = np.frombuffer(state, "<i8")
        low, high = max(smallest * accepted, 1 - _MAX), min(largest * accepted, _MAX - 1)
        return bool(((totals >= low) & (totals <= high)).all())

    def _restore(self, count: int, state: bytes) -> bool:
        if count != len(self._totals) or len(state) != 8 * count:
            return False
        self._totals = np.frombuffer(state, "<i8").astype(np.int64)
        return True

    def estimate(self) -> Result_co:
        """Return the estimate from the accepted reports.

        Returns
        -------
        object
            Whatever the protocol's ``estimate`` returns, such as an `Estimate`.
        """
        return self._oracle.estimate(self._totals.copy(), self._accepted, simulated=self._simulated)
