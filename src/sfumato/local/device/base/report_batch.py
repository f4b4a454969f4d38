"""Many reports in one message: a header that identifies the protocol, followed by their records."""

from __future__ import annotations

import operator
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final, overload

import numpy as np

from sfumato import _check
from sfumato.errors import ParameterError
from sfumato.local.device.base.record_layout import Records
from sfumato.numerics.randomness.source import Rng, random_source

__all__ = ["ReportBatch"]

_MAGIC: Final = b"sfmtLOCL"
_VERSION: Final = 2
_HEADER: Final = struct.Struct("<8sHBxIQ32s")
"""Magic, version, whether simulated, bytes of a record, records, digest of the specification."""
_SPARE: Final = 11
"""Position of a byte of the header that is 0 in this version."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class ReportBatch:
    """Reports of one protocol with one set of parameters.

    Parameters
    ----------
    records : uint8 array, shape (reports, width)
        One record a row.
    digest : bytes
        Of the randomizer's specification, 32 bytes.
    simulated : bool
        Whether the randomness followed from a seed; then nobody was protected.

    Notes
    -----
    The order of the records is the caller's: `shuffled` destroys it. Within a record nothing is ordered by
    who reports or by what is true.

    Examples
    --------
    >>> from sfumato.local.device import Domain, RandomizedResponseRandomizer
    >>> device = RandomizedResponseRandomizer(epsilon=1.0, domain=Domain(["no", "yes"]))
    >>> batch = device.randomize_batch(["yes", "no", "yes"], rng=1)
    >>> len(batch), batch.width, batch.simulated
    (3, 5, True)
    >>> list(ReportBatch.from_bytes(batch.to_bytes(), digest=device.digest)) == list(batch)
    True
    """

    records: Records
    digest: bytes
    simulated: bool = False

    def __post_init__(self) -> None:
        if self.records.dtype != np.uint8 or self.records.ndim != 2:
            _check.refuse_type(
                "records", "be a uint8 array with two axes", self.records, "use randomize_batch"
            )
        self.records.flags.writeable = False

    @property
    def width(self) -> int:
        """Bytes of a record."""
        return int(self.records.shape[1])

    def __len__(self) -> int:
        return len(self.records)

    @overload
    def __getitem__(self, index: int) -> bytes: ...

    @overload
    def __getitem__(self, index: slice) -> ReportBatch: ...

    def __getitem__(self, index: int | slice) -> bytes | ReportBatch:
        if isinstance(index, slice):
            return ReportBatch(self.records[index], self.digest, self.simulated)
        return bytes(self.records[operator.index(index)])

    def __iter__(self) -> Iterator[bytes]:
        return (row.tobytes() for row in self.records)

    def shuffled(self, rng: Rng = None) -> ReportBatch:
        """Return the same records in random order.

        Parameters
        ----------
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy.

        Returns
        -------
        ReportBatch
            Of the same records; every order is equally likely.

        Notes
        -----
        They are sorted by fresh words of 64 bits, which are all drawn anew if two are alike: so every order
        is equally likely.
        """
        source = random_source(rng)
        order, alike = np.arange(0), True
        while alike:
            words = source.words(len(self))
            order = np.argsort(words, kind="stable")
            alike = bool((words[order[1:]] == words[order[:-1]]).any())
        return ReportBatch(self.records[order], self.digest, self.simulated or source.simulated)

    @staticmethod
    def concatenated(batches: Sequence[ReportBatch]) -> ReportBatch:
        """Return the records of several batches as one batch.

        Parameters
        ----------
        batches : sequence of ReportBatch
            At least one, all of one specification.

        Returns
        -------
        ReportBatch
            Marked as simulated if one of them is.

        Raises
        ------
        ParameterError
            If there is none, or they are of different specifications.
        """
        if not batches or len({(batch.digest, batch.width) for batch in batches}) > 1:
            rule = "be one or more, made by one specification"
            _check.refuse("batches", rule, len(batches), "concatenate each question by itself")
        records = np.concatenate([batch.records for batch in batches])
        return ReportBatch(records, batches[0].digest, any(batch.simulated for batch in batches))

    def to_bytes(self) -> bytes:
        """Return the header and all records; `from_bytes` reads them again.

        Returns
        -------
        bytes
            56 bytes of header, then `width` for each record.
        """
        header = _HEADER.pack(_MAGIC, _VERSION, self.simulated, self.width, len(self), self.digest)
        return header + self.records.tobytes()

    @staticmethod
    def from_bytes(data: bytes, *, digest: bytes | None = None) -> ReportBatch:
        """Return the batch that `to_bytes` wrote.

        Parameters
        ----------
        data : bytes
            Whatever came; nothing in it is trusted.
        digest : bytes, optional
            Of the specification that is expected.

        Returns
        -------
        ReportBatch

        Raises
        ------
        ParameterError
            If it is no batch, of another version or another specification, or not whole.
        """
        if len(data) < _HEADER.size or not data.startswith(_MAGIC):
            raise ParameterError(
                "data must be the bytes of a ReportBatch, got others; pass what to_bytes() gave"
            )
        _, version, simulated, width, count, found = _HEADER.unpack_from(data)
        if version != _VERSION:
            remedy = "use a newer sfumato" if version > _VERSION else "ask those devices again"
            _check.refuse("data", f"be of version {_VERSION}", version, remedy)
        if simulated > 1 or data[_SPARE]:
            raise ParameterError("data must have the header of a ReportBatch, got another; pass it unaltered")
        if digest is not None and found != digest:
            raise ParameterError(
                "data must be of this specification, got another protocol, parameters or domain"
            )
        if not width or len(data) != _HEADER.size + width * count:
            raise ParameterError("data must be whole, got more or fewer bytes than its header says")
        records = np.frombuffer(data, np.uint8, offset=_HEADER.size).reshape(count, width)
        return ReportBatch(records, found, bool(simulated))
