"""The record of a release from counted tables, as bytes for the ledger: asking again reads the same bytes."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from sfumato._wire import NUMBER, TEXT, Format, Record, canonical, parse
from sfumato.errors import LedgerUnavailable, ParameterError
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.receipt import Receipt

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["StorableRelease", "SyntheticRecord"]

_FORMAT: Final = Format("sfumato.synthetic-release", 1)
_KINDS: Final = {
    "domain": ("sfumato.synthetic.domain.domain_release", "DomainRelease"),
    "marginals": ("sfumato.synthetic.marginals.marginals_release", "MarginalsRelease"),
    "synthetic-model": ("sfumato.synthetic.generators.synthetic_model", "SyntheticModel"),
    "topdown": ("sfumato.synthetic.topdown.topdown_release", "TopDownRelease"),
}
"""The wire name of each kind of release, which never changes, and the class that reads it."""
_UNKNOWN: Final = (
    "the stored release must be of a kind that is known here, got another; nothing was charged: install a "
    "newer sfumato"
)


class StorableRelease(Protocol):
    """A release that can be written as a document, and read back by its class's ``from_json``."""

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger was charged."""
        ...

    @property
    def simulated(self) -> bool:
        """True if the noise came from a seed."""
        ...

    def to_json(self) -> str:
        """Return the release as a document."""
        ...

    def to_arrow(self) -> pa.Table:
        """Return the released numbers."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticRecord:
    """A release, and what is public about its charge; no raw data.

    Parameters
    ----------
    kind : str
        Of the release: ``"marginals"``, ``"domain"``, ``"synthetic-model"`` or ``"topdown"``.
    release : StorableRelease
    epsilon, delta : float
        The guarantee of this release alone.
    privacy_unit : str
        Who is protected.
    """

    kind: str
    release: Any
    epsilon: float
    delta: float
    privacy_unit: str

    @property
    def loss(self) -> PrivacyLoss:
        """What the ledger was charged."""
        loss: PrivacyLoss = self.release.loss
        return loss

    @property
    def simulated(self) -> bool:
        """True if the noise came from a seed."""
        return bool(self.release.simulated)

    def to_bytes(self) -> bytes:
        """Serialise as JSON of the format ``sfumato.synthetic-release``.

        Returns
        -------
        bytes
        """
        fields = {**_RECORD.encode(self), "release": self.release.to_json()}
        return canonical(_FORMAT.wrap(fields)).encode()

    @classmethod
    def from_bytes(cls, payload: bytes) -> SyntheticRecord:
        """Read a committed record back.

        Parameters
        ----------
        payload : bytes
            What `to_bytes` wrote.

        Returns
        -------
        SyntheticRecord

        Raises
        ------
        LedgerUnavailable
            If it is no such record, or of a version or kind that is not known here.
        """
        try:
            _, fields = _FORMAT.unwrap("release", parse("release", payload))
            text = TEXT.decode("release", fields.pop("release", None))
            read = _RECORD.decode("release", fields)
            module, name = _KINDS[read["kind"]]
            release = getattr(importlib.import_module(module), name).from_json(text)
        except (ParameterError, KeyError):
            raise LedgerUnavailable(_UNKNOWN) from None
        return cls(release=release, **read)

    @classmethod
    def from_payload(cls, payload: bytes, receipt: Receipt) -> SyntheticRecord:
        """Read what a ledger stored; the record holds no receipt.

        Parameters
        ----------
        payload : bytes
        receipt : Receipt

        Returns
        -------
        SyntheticRecord
        """
        del receipt
        return cls.from_bytes(payload)

    def to_arrow(self) -> pa.Table:
        """Return the released numbers.

        Returns
        -------
        pyarrow.Table
        """
        return self.release.to_arrow()


_RECORD: Final[Record[Any]] = Record(
    "a release", dict, {"kind": TEXT, "epsilon": NUMBER, "delta": NUMBER, "privacy_unit": TEXT}
)
