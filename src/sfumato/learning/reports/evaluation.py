"""The record of a noisy accuracy, as bytes for the ledger: asking again reads the same bytes, and is free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import pyarrow as pa

from sfumato._wire import BOOLEAN, INTEGER, NUMBER, TEXT, Format, Record, canonical, parse
from sfumato.errors import LedgerUnavailable, ParameterError
from sfumato.privacy.catalog import LOSS
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.receipt import Receipt

__all__ = ["EvaluationRecord"]

FORMAT: Final = Format("sfumato.evaluation-record", 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRecord:
    """A noisy number of rows that a model classifies correctly, and what is public about it; no raw data.

    Parameters
    ----------
    correct : int
        The noisy number, which may be negative or more than the rows.
    rows : int
        The public number of rows.
    lower, upper : float
        A 95 % interval for the part of the rows that is classified correctly.
    epsilon : float
        The guarantee of this number alone, at delta 0.
    loss : PrivacyLoss
        What the ledger was charged.
    privacy_unit : str
        Who is protected.
    simulated : bool
        True if the noise came from a seed.
    charge : int
        The number of the charge in the ledger.

    Examples
    --------
    >>> from sfumato.privacy import PureDP
    >>> record = EvaluationRecord(
    ...     correct=83, rows=100, lower=0.77, upper=0.89, epsilon=0.5, loss=PureDP(0.5), privacy_unit="row",
    ...     simulated=False, charge=2,
    ... )
    >>> record.accuracy
    0.83
    >>> EvaluationRecord.from_bytes(record.to_bytes()) == record
    True
    """

    correct: int
    rows: int
    lower: float
    upper: float
    epsilon: float
    loss: PrivacyLoss
    privacy_unit: str
    simulated: bool
    charge: int

    @property
    def accuracy(self) -> float:
        """The noisy part of the rows, within 0 and 1."""
        return max(0.0, min(1.0, self.correct / self.rows)) if self.rows else 0.0

    def to_bytes(self) -> bytes:
        """Serialise as JSON of the format ``sfumato.evaluation-record``.

        Returns
        -------
        bytes
        """
        return canonical(FORMAT.wrap(_RECORD.encode(self))).encode()

    @classmethod
    def from_bytes(cls, payload: bytes) -> EvaluationRecord:
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
            record: EvaluationRecord = _RECORD.decode("release", fields)
        except ParameterError:
            raise LedgerUnavailable(
                "stored release must be an evaluation of a format that is known here, got another; read it "
                "with the version of sfumato that wrote it"
            ) from None
        return record

    @classmethod
    def from_payload(cls, payload: bytes, receipt: Receipt) -> EvaluationRecord:
        """Read what a ledger stored; the record has its charge's number itself.

        Parameters
        ----------
        payload : bytes
        receipt : Receipt
        """
        del receipt
        return cls.from_bytes(payload)

    def to_arrow(self) -> pa.Table:
        """Return the released numbers, in one row.

        Returns
        -------
        pyarrow.Table
            The columns ``correct``, ``rows``, ``accuracy``, ``lower`` and ``upper``.
        """
        row = {
            "correct": self.correct,
            "rows": self.rows,
            "accuracy": self.accuracy,
            "lower": self.lower,
            "upper": self.upper,
        }
        return pa.Table.from_pylist([row])


_RECORD: Final[Record[Any]] = Record(
    "an evaluation",
    EvaluationRecord,
    {
        "correct": INTEGER,
        "rows": INTEGER,
        "lower": NUMBER,
        "upper": NUMBER,
        "epsilon": NUMBER,
        "loss": LOSS,
        "privacy_unit": TEXT,
        "simulated": BOOLEAN,
        "charge": INTEGER,
    },
)
