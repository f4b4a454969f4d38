"""Reports that are stored as they are, because only the first ones' answers decide what to ask the others."""

from __future__ import annotations

from typing import Any, Final, Generic, Protocol, TypeVar, final

import numpy as np

from sfumato.local.base.base_aggregator import Intake
from sfumato.local.device.base.randomizer import Randomizer
from sfumato.local.device.base.record_layout import Records

__all__ = ["Keeper", "ReportKeeper"]

Result_co = TypeVar("Result_co", covariant=True)

_MANY: Final = 1 << 12


class Keeper(Protocol[Result_co]):
    """What estimates something from records."""

    @property
    def device(self) -> Randomizer:
        """The client half."""

    def estimate(self, records: Records, *, simulated: bool = False) -> Result_co:
        """Return the estimate from records."""


@final
class ReportKeeper(Intake[Keeper[Result_co]], Generic[Result_co]):
    """The accepted reports to one protocol, in pieces that merge; their memory grows with their number.

    Parameters
    ----------
    oracle : protocol
        Made by its ``aggregator()``.

    Notes
    -----
    Whatever comes is counted as accepted or as refused, and never raises; see
    `sfumato.local.base.base_aggregator.Intake`. What is reported does not depend on the order of the records.
    """

    __slots__ = ("_few", "_pieces")

    def __init__(self, oracle: Keeper[Result_co]) -> None:
        super().__init__(oracle)
        self._pieces: list[Records] = []
        self._few: list[Records] = []

    @property
    def records(self) -> Records:
        """All accepted records, one a row."""
        empty = np.zeros((0, self._oracle.device.width), np.uint8)
        if len(self._pieces) != 1 or self._few:
            self._pieces, self._few = [np.concatenate([empty, *self._pieces, *self._few])], []
        return self._pieces[0]

    def _keep(self, records: Records) -> None:
        self._few.append(records.copy())
        # Records that come one by one are not stored one by one.
        if len(self._few) >= _MANY:
            self._pieces.append(np.concatenate(self._few))
            self._few = []

    def _join(self, other: Any) -> None:
        self._pieces.append(other.records.copy())

    def _state(self) -> tuple[int, bytes]:
        return len(self.records), self.records.tobytes()

    def _possible(self, accepted: int, state: bytes) -> bool:
        return len(state) == self._oracle.device.width * accepted

    def _restore(self, count: int, state: bytes) -> bool:
        device = self._oracle.device
        if len(state) != device.width * count:
            return False
        records = np.frombuffer(state, np.uint8).reshape(count, device.width)
        if not (device.layout.genuine(records).all() and device.well_formed(records).all()):
            return False
        self._pieces, self._few = [records], []
        return True

    def estimate(self) -> Result_co:
        """Return the estimate from the accepted reports."""
        return self._oracle.estimate(self.records, simulated=self._simulated)
