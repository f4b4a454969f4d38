"""The record of noisy histograms, as bytes for the ledger: what suggested limits are computed from.

It is committed in this form before anything is delivered; asking again reads the same bytes back.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import pyarrow as pa

from sfumato._wire import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    RATIONAL,
    TEXT,
    Field,
    Format,
    Record,
    canonical,
    parse,
    sequence,
)
from sfumato.errors import LedgerUnavailable, ParameterError
from sfumato.privacy.catalog import LOSS
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.receipt import Receipt
from sfumato.queries.release.record import UNKNOWN_FORMAT

__all__ = ["FORMAT", "CellCounts", "LimitsRecord"]

FORMAT: Final = Format("sfumato.limit-histograms", 1)
"""The format of the record."""


@final
@dataclass(frozen=True, slots=True)
class CellCounts:
    """The noisy cells of one histogram.

    Parameters
    ----------
    words : str
        What is counted.
    cap : int
        How often a unit counts at most.
    scale : Fraction
        Of the discrete Laplace noise on each cell.
    counts : tuple of int
    """

    words: str
    cap: int
    scale: Fraction
    counts: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class LimitsRecord:
    """Noisy histograms and what is public about them; no raw data.

    Parameters
    ----------
    histograms : tuple of CellCounts
    epsilon : float
        The guarantee of these histograms alone, at delta 0.
    loss : PrivacyLoss
        What the ledger was charged.
    privacy_unit : str
        Who is protected.
    simulated : bool
        True if the noise came from a seed.

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> cells = CellCounts("groups of a unit", 1, Fraction(10), (12, -3))
    >>> record = LimitsRecord((cells,), 0.1, PureDP(0.1), "person", simulated=False)
    >>> LimitsRecord.from_bytes(record.to_bytes()) == record
    True
    """

    histograms: tuple[CellCounts, ...]
    epsilon: float
    loss: PrivacyLoss
    privacy_unit: str
    simulated: bool

    def to_bytes(self) -> bytes:
        """Serialise as JSON of the format ``sfumato.limit-histograms``.

        Returns
        -------
        bytes
        """
        return canonical(FORMAT.wrap(_RECORD.encode(self))).encode()

    @classmethod
    def from_bytes(cls, payload: bytes) -> LimitsRecord:
        """Read a committed record back.

        Parameters
        ----------
        payload : bytes
            What `to_bytes` wrote.

        Raises
        ------
        LedgerUnavailable
            If it is no such record, or of a version or name that is not known here.
        """
        try:
            _, fields = FORMAT.unwrap("release", parse("release", payload))
            record: LimitsRecord = _RECORD.decode("release", fields)
        except ParameterError:
            raise LedgerUnavailable(UNKNOWN_FORMAT) from None
        return record

    @classmethod
    def from_payload(cls, payload: bytes, receipt: Receipt) -> LimitsRecord:
        """Read what a ledger stored; the record holds no receipt.

        Parameters
        ----------
        payload : bytes
        receipt : Receipt
        """
        del receipt
        return cls.from_bytes(payload)

    def to_arrow(self) -> pa.Table:
        """Return the noisy cells, a row for each.

        Returns
        -------
        pyarrow.Table
            The columns ``histogram``, ``cell`` and ``count``.
        """
        rows = [
            {"histogram": each.words, "cell": cell, "count": count}
            for each in self.histograms
            for cell, count in enumerate(each.counts)
        ]
        types = [("histogram", pa.string()), ("cell", pa.int64()), ("count", pa.int64())]
        return pa.Table.from_pylist(rows, pa.schema(types))


_CELLS: Final[Record[CellCounts]] = Record(
    "a histogram",
    CellCounts,
    {"counted": Field("words", TEXT), "cap": INTEGER, "scale": RATIONAL, "counts": sequence(INTEGER)},
)

_RECORD: Final[Record[Any]] = Record(
    "suggested limits",
    LimitsRecord,
    {
        "histograms": sequence(_CELLS),
        "epsilon": NUMBER,
        "loss": LOSS,
        "privacy_unit": TEXT,
        "simulated": BOOLEAN,
    },
)
