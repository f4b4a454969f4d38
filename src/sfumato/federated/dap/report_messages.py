"""Messages of the upload: reports, their encrypted shares, and what a leader answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, final

from sfumato.federated.dap.tls_syntax import MalformedMessage, Reader, decoded, opaque, uint

__all__ = [
    "ID_SIZE",
    "TASK_ID_SIZE",
    "Extension",
    "HpkeCiphertext",
    "InputShareAad",
    "PlaintextInputShare",
    "Report",
    "ReportError",
    "ReportMetadata",
    "ReportShare",
    "ReportUploadStatus",
    "decoded_reports",
    "decoded_statuses",
]

ID_SIZE: Final = 16
"""Bytes of the ids of reports, jobs and shares."""

TASK_ID_SIZE: Final = 32
"""Bytes of the ids of tasks and of batches."""


class ReportError(IntEnum):
    """Why one report is not counted.

    Examples
    --------
    >>> ReportError(2).name
    'REPORT_REPLAYED'
    """

    RESERVED = 0
    BATCH_COLLECTED = 1
    REPORT_REPLAYED = 2
    REPORT_DROPPED = 3
    HPKE_UNKNOWN_CONFIG_ID = 4
    HPKE_DECRYPT_ERROR = 5
    VDAF_PREP_ERROR = 6
    TASK_EXPIRED = 7
    INVALID_MESSAGE = 8
    REPORT_TOO_EARLY = 9
    TASK_NOT_STARTED = 10
    OUTDATED_CONFIG = 11

    @staticmethod
    def read(reader: Reader) -> ReportError:
        """Read an error."""
        number = reader.uint(1)
        if number >= len(ReportError):
            raise MalformedMessage("an error has an unknown number")
        return ReportError(number)


@final
@dataclass(frozen=True, slots=True)
class HpkeCiphertext:
    """A sealed message, and for which key.

    Examples
    --------
    >>> HpkeCiphertext(1, b"ab", b"c").to_bytes().hex()
    '01000261620000000163'
    """

    config_id: int
    enc: bytes
    payload: bytes

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        return uint(self.config_id, 1) + opaque(self.enc, 2) + opaque(self.payload, 4)

    @staticmethod
    def read(reader: Reader) -> HpkeCiphertext:
        """Read a ciphertext."""
        return HpkeCiphertext(reader.uint(1), reader.opaque(2, minimum=1), reader.opaque(4, minimum=1))


@final
@dataclass(frozen=True, slots=True)
class Extension:
    """Something that a report says beyond its measurement; none is defined here, so each is refused.

    Examples
    --------
    >>> Extension(23, b"x").to_bytes().hex()
    '0017000178'
    """

    kind: int
    data: bytes

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        return uint(self.kind, 2) + opaque(self.data, 2)

    @staticmethod
    def read(reader: Reader) -> Extension:
        """Read an extension."""
        return Extension(reader.uint(2), reader.opaque(2))


def _extensions(extensions: Sequence[Extension]) -> bytes:
    return opaque(b"".join(one.to_bytes() for one in extensions), 2)


@final
@dataclass(frozen=True, slots=True)
class ReportMetadata:
    """What is public of a report.

    Parameters
    ----------
    report_id : bytes
        16 random bytes, which are the report's nonce, too.
    time : int
        When it was made, in units of the task's time precision since 1970.
    extensions : tuple of Extension
        Public ones.

    Examples
    --------
    >>> ReportMetadata(bytes(16), 7).to_bytes()[16:].hex()
    '00000000000000070000'
    """

    report_id: bytes
    time: int
    extensions: tuple[Extension, ...] = ()

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        return self.report_id + uint(self.time, 8) + _extensions(self.extensions)

    @staticmethod
    def read(reader: Reader) -> ReportMetadata:
        """Read metadata."""
        return ReportMetadata(reader.fixed(ID_SIZE), reader.uint(8), reader.vector(2, Extension.read))


@final
@dataclass(frozen=True, slots=True)
class Report:
    """A measurement as a client uploads it: a share for each aggregator, which it alone can open.

    Examples
    --------
    >>> sealed = HpkeCiphertext(1, b"e", b"p")
    >>> report = Report(ReportMetadata(bytes(16), 7), b"", sealed, sealed)
    >>> decoded_reports(report.to_bytes()) == (report,)
    True
    """

    metadata: ReportMetadata
    public_share: bytes
    leader_share: HpkeCiphertext
    helper_share: HpkeCiphertext

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        shares = self.leader_share.to_bytes() + self.helper_share.to_bytes()
        return self.metadata.to_bytes() + opaque(self.public_share, 4) + shares

    @staticmethod
    def read(reader: Reader) -> Report:
        """Read a report."""
        return Report(
            ReportMetadata.read(reader),
            reader.opaque(4),
            HpkeCiphertext.read(reader),
            HpkeCiphertext.read(reader),
        )


def decoded_reports(data: bytes) -> tuple[Report, ...]:
    """Return the reports of an upload request.

    Examples
    --------
    >>> decoded_reports(b"")
    ()
    """
    return decoded(data, lambda reader: reader.rest(Report.read))


@final
@dataclass(frozen=True, slots=True)
class ReportUploadStatus:
    """Why a leader did not take a report.

    Examples
    --------
    >>> ReportUploadStatus(bytes(16), ReportError.REPORT_DROPPED).to_bytes()[16:].hex()
    '03'
    """

    report_id: bytes
    error: ReportError

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        return self.report_id + uint(self.error, 1)

    @staticmethod
    def read(reader: Reader) -> ReportUploadStatus:
        """Read a status."""
        return ReportUploadStatus(reader.fixed(ID_SIZE), ReportError.read(reader))


def decoded_statuses(data: bytes) -> tuple[ReportUploadStatus, ...]:
    r"""Return the statuses of an upload response: of the reports that were not taken.

    Examples
    --------
    >>> decoded_statuses(bytes(16) + b"\x03")[0].error.name
    'REPORT_DROPPED'
    """
    return decoded(data, lambda reader: reader.rest(ReportUploadStatus.read))


@final
@dataclass(frozen=True, slots=True)
class PlaintextInputShare:
    """What is sealed for one aggregator.

    Examples
    --------
    >>> PlaintextInputShare((), b"abc").to_bytes().hex()
    '000000000003616263'
    """

    extensions: tuple[Extension, ...]
    payload: bytes

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        return _extensions(self.extensions) + opaque(self.payload, 4)

    @staticmethod
    def read(reader: Reader) -> PlaintextInputShare:
        """Read an input share."""
        return PlaintextInputShare(reader.vector(2, Extension.read), reader.opaque(4, minimum=1))


@final
@dataclass(frozen=True, slots=True)
class InputShareAad:
    """What a sealed input share is bound to.

    Examples
    --------
    >>> len(InputShareAad(bytes(32), ReportMetadata(bytes(16), 7), b"").to_bytes())
    62
    """

    task_id: bytes
    metadata: ReportMetadata
    public_share: bytes

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        return self.task_id + self.metadata.to_bytes() + opaque(self.public_share, 4)

    @staticmethod
    def read(reader: Reader) -> InputShareAad:
        """Read the data."""
        return InputShareAad(reader.fixed(TASK_ID_SIZE), ReportMetadata.read(reader), reader.opaque(4))


@final
@dataclass(frozen=True, slots=True)
class ReportShare:
    """What one aggregator gets of a report.

    Examples
    --------
    >>> share = ReportShare(ReportMetadata(bytes(16), 7), b"", HpkeCiphertext(1, b"e", b"p"))
    >>> decoded(share.to_bytes(), ReportShare.read) == share
    True
    """

    metadata: ReportMetadata
    public_share: bytes
    sealed: HpkeCiphertext

    def to_bytes(self) -> bytes:
        """Return the encoding."""
        return self.metadata.to_bytes() + opaque(self.public_share, 4) + self.sealed.to_bytes()

    @staticmethod
    def read(reader: Reader) -> ReportShare:
        """Read a report share."""
        return ReportShare(ReportMetadata.read(reader), reader.opaque(4), HpkeCiphertext.read(reader))
