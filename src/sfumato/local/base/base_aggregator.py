"""Take in reports in any order and any number of pieces, whatever bytes arrive."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Final, Generic, NoReturn, Protocol, Self, TypeVar

import numpy as np

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.local.device.base.randomizer import Randomizer
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.base.report_batch import ReportBatch

__all__ = ["REASONS", "Asked", "Intake"]

REASONS: Final = ("width", "specification", "encoding")
"""Why records are refused: not whole, of another protocol or domain or version, or no payload of this one."""

_MAGIC: Final = b"sfmtLAGG"
_VERSION: Final = 2
_HEADER: Final = struct.Struct("<8sHB32sQ3QQ")
"""Magic, version, simulated, digest, accepted, refused by reason, how many items of the state follow."""
_BLOCK: Final = 1 << 20
_MAX: Final = 1 << 62
"""Counts stay below it: two of them add up without overflow."""


class Asked(Protocol):
    """What reports are of."""

    @property
    def device(self) -> Randomizer:
        """The client half."""


Oracle_co = TypeVar("Oracle_co", bound=Asked, covariant=True)


class Intake(ABC, Generic[Oracle_co]):
    """The reports to one protocol that have arrived, whatever is stored of them.

    Parameters
    ----------
    oracle : protocol
        Whose reports are taken in.

    Notes
    -----
    Whatever comes is counted as accepted or as refused, and never raises: a record of another width, one with
    another specification's tag, one whose payload no device sends. A record that was sent twice is counted
    twice: the bytes cannot show it (a shuffler knows by the clients' nonces).
    """

    __slots__ = ("_accepted", "_oracle", "_refused", "_simulated")

    def __init__(self, oracle: Oracle_co) -> None:
        self._oracle = oracle
        self._accepted = 0
        self._refused = dict.fromkeys(REASONS, 0)
        self._simulated = False

    @abstractmethod
    def _keep(self, records: Records) -> None:
        """Store what well-formed records add."""

    @abstractmethod
    def _join(self, other: Any) -> None:
        """Add what another one of the same class stores."""

    @abstractmethod
    def _state(self) -> tuple[int, bytes]:
        """Return how many items are stored, and their bytes."""

    def _possible(self, accepted: int, state: bytes) -> bool:
        """Return whether a state of the right length may come of so many records."""
        return True

    @abstractmethod
    def _restore(self, count: int, state: bytes) -> bool:
        """Take up a state instead of what is stored, if it is whole; return whether it is."""

    @property
    def oracle(self) -> Oracle_co:
        """The protocol that is counted."""
        return self._oracle

    @property
    def accepted(self) -> int:
        """How many records were counted."""
        return self._accepted

    @property
    def refused(self) -> Mapping[str, int]:
        """How many records were not, by reason."""
        return dict(self._refused)

    @property
    def simulated(self) -> bool:
        """Whether a batch said that its randomness followed from a seed."""
        return self._simulated

    def add(self, record: bytes | bytearray | memoryview) -> bool:
        """Count one record; return whether it was accepted.

        Parameters
        ----------
        record : bytes
            One record, as `Randomizer.randomize` returned it.

        Returns
        -------
        bool
            False where it is counted in `refused`.
        """
        before = self._accepted
        given: object = record
        whole = bytes(given) if isinstance(given, bytes | bytearray | memoryview) else b""
        if len(whole) == self._oracle.device.width:
            self._absorb(np.frombuffer(whole, np.uint8).reshape(1, -1))
        else:
            self._refused["width"] += 1
        return self._accepted > before

    def add_batch(self, reports: ReportBatch | bytes | Records) -> int:
        """Count many records; return how many were accepted.

        Parameters
        ----------
        reports : ReportBatch, bytes of one, or uint8 array of shape (reports, width)
            Bytes that are no whole batch are one refused record (``"width"``); a batch of another
            specification is refused record by record.

        Returns
        -------
        int
            How many of the records were accepted.
        """
        device, before = self._oracle.device, self._accepted
        if isinstance(reports, bytes | bytearray | memoryview):
            try:
                reports = ReportBatch.from_bytes(bytes(reports))
            except ParameterError:
                self._refused["width"] += 1
                return 0
        if isinstance(reports, ReportBatch) and reports.digest != device.digest:
            self._refused["specification"] += len(reports)
            return 0
        records: object = reports.records if isinstance(reports, ReportBatch) else reports
        if not isinstance(records, np.ndarray) or records.dtype != np.uint8 or records.ndim != 2:
            rule = "be a ReportBatch, its bytes or a uint8 array with two axes"
            _check.refuse_type("reports", rule, records, "call add() with each of single records")
        if records.shape[1] != device.width:
            self._refused["width"] += len(records)
            return 0
        for block in _blocks(records):
            self._absorb(block)
        if isinstance(reports, ReportBatch) and self._accepted > before:
            self._simulated |= reports.simulated
        return self._accepted - before

    def _absorb(self, records: Records) -> None:
        device = self._oracle.device
        genuine = device.layout.genuine(records)
        sound = genuine & device.well_formed(records)
        count = int(sound.sum())
        if count:
            self._keep(records if count == len(records) else records[sound])
        self._accepted += count
        strangers = len(records) - int(genuine.sum())
        self._refused["specification"] += strangers
        self._refused["encoding"] += len(records) - strangers - count

    def merge(self, other: Self | bytes | bytearray | memoryview) -> Self:
        """Add what another aggregator of the same oracle counted, and return this one.

        Parameters
        ----------
        other : one of the same class, or bytes of one

        Returns
        -------
        aggregator
            This one.

        Raises
        ------
        ParameterError
            If it is of another specification or kind, or the counts are beyond 2**62; then nothing is added.

        Notes
        -----
        What is merged twice is counted twice: the bytes cannot show it.
        """
        if isinstance(other, bytes | bytearray | memoryview):
            other = self.restored(bytes(other))
        if not isinstance(other, type(self)):
            _check.refuse_type(
                "other",
                "be an aggregator of this kind, or bytes of one",
                other,
                "pass to_bytes()",
            )
        if other.oracle.device.digest != self._oracle.device.digest:
            raise ParameterError("other must count the same specification, got another protocol or domain")
        refused = {reason: count + self._refused[reason] for reason, count in other.refused.items()}
        accepted = self._accepted + other.accepted
        if max(accepted, *refused.values()) >= _MAX:
            raise ParameterError("other must leave all counts below 2**62, got more; it is no honest state")
        self._join(other)
        self._accepted, self._refused = accepted, refused
        self._simulated |= other.simulated
        return self

    def to_bytes(self) -> bytes:
        """Return the whole state; ``oracle.aggregator(state)`` reads it again.

        Returns
        -------
        bytes
            A header and the state, in a stable format.
        """
        refused = (self._refused[reason] for reason in REASONS)
        digest, (count, state) = self._oracle.device.digest, self._state()
        header = _HEADER.pack(_MAGIC, _VERSION, self._simulated, digest, self._accepted, *refused, count)
        return header + state

    def restored(self, state: bytes) -> Self:
        """Return another aggregator of the same oracle, with the state that `to_bytes` wrote; see `load`.

        Parameters
        ----------
        state : bytes
            As `to_bytes` wrote it.

        Returns
        -------
        aggregator
            A new one.
        """
        return type(self)(self._oracle).load(state)

    def load(self, state: bytes) -> Self:
        """Replace this aggregator's state by the one that `to_bytes` wrote, and return this aggregator.

        Parameters
        ----------
        state : bytes
            As `to_bytes` wrote it.

        Returns
        -------
        aggregator
            This one.

        Raises
        ------
        ParameterError
            If the bytes are of another version or specification, not whole, or no reports add up to them.
        """
        given: object = state
        if not isinstance(given, bytes | bytearray | memoryview):
            _check.refuse_type("state", "be bytes", given, "pass what to_bytes() gave")
        state = bytes(given)
        if len(state) < _HEADER.size or not state.startswith(_MAGIC):
            _not_whole()
        _, version, simulated, digest, accepted, *refused, count = _HEADER.unpack_from(state)
        if version != _VERSION:
            remedy = "use a newer sfumato" if version > _VERSION else "count the reports again"
            _check.refuse("state", f"be of version {_VERSION}", version, remedy)
        if digest != self._oracle.device.digest:
            raise ParameterError("state must be of this specification, got another's; use its own protocol")
        possible = simulated <= 1 and max(accepted, *refused) < _MAX
        if not possible or not self._possible(accepted, state[_HEADER.size :]):
            raise ParameterError("state must hold counts that reports add up to, got others")
        if not self._restore(count, state[_HEADER.size :]):
            _not_whole()
        self._accepted, self._simulated = accepted, bool(simulated)
        self._refused = dict(zip(REASONS, refused, strict=True))
        return self


def _not_whole() -> NoReturn:
    raise ParameterError("state must be the bytes of an aggregator of this oracle, got others or not all")


def _blocks(records: Records) -> Iterator[Records]:
    """Yield rows in pieces of bounded size, so that memory stays the same for any number of them."""
    rows = max(1, _BLOCK * 64 // max(1, records.shape[1]))
    yield from (records[start : start + rows] for start in range(0, len(records), rows))
