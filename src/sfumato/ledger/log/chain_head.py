"""The head of a ledger's hash chain, exported to be stored elsewhere: against it a roll-back is detected."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, replace
from typing import Final

from sfumato._wire import INTEGER, TEXT, Field, Format, Record, canonical, parse
from sfumato.errors import LedgerMismatch
from sfumato.ledger.identity import keyed

__all__ = ["ChainHead"]

FORMAT: Final = Format("sfumato.ledger-head", 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainHead:
    """Where a ledger's chain stood when the head was exported.

    A ledger is one file, and a file can be put back as it was last week, whole and consistent. Only a value
    stored outside the file shows that: store heads where those who can write the ledger cannot, and pass the
    latest one to `Ledger.verify`.

    Parameters
    ----------
    ledger : str
        Id of the ledger.
    position : int
        Position of the last event.
    charges : int
        How many charges there were.
    digest : str
        Hash of the last event, in hexadecimal.
    steps : int
        How many steps of training runs were claimed in all, which are recorded beside the chain.
    mac : str
        HMAC-SHA-256 of the other fields under the ledger's key: a head that was made up is refused.

    Examples
    --------
    >>> head = ChainHead.signed(bytes(32), ledger="ab", position=3, charges=2, digest="cd")
    >>> ChainHead.from_json(head.to_json()) == head
    True
    >>> head.signed_by(bytes(32)), head.signed_by(bytes(31) + b"!")
    (True, False)
    """

    ledger: str
    position: int
    charges: int
    digest: str
    mac: str
    steps: int = 0

    @classmethod
    def signed(
        cls, key: bytes, *, ledger: str, position: int, charges: int, digest: str, steps: int = 0
    ) -> ChainHead:
        """Return the head with its MAC under ``key``.

        Parameters
        ----------
        key : bytes
            The ledger's key.
        ledger, position, charges, digest, steps
            As for `ChainHead`.

        Returns
        -------
        ChainHead
        """
        unsigned = cls(ledger=ledger, position=position, charges=charges, digest=digest, mac="", steps=steps)
        return replace(unsigned, mac=unsigned._mac_under(key))

    def signed_by(self, key: bytes) -> bool:
        """Whether the MAC is that of the other fields under ``key``.

        Parameters
        ----------
        key : bytes
            The ledger's key.

        Returns
        -------
        bool
        """
        return hmac.compare_digest(self._mac_under(key).encode(), self.mac.encode("utf-8", "surrogatepass"))

    def require_of(self, ledger: str, key: bytes) -> None:
        """Refuse a head that this ledger did not export.

        Parameters
        ----------
        ledger : str
            Id of the ledger.
        key : bytes
            The ledger's key.

        Raises
        ------
        LedgerMismatch
            It is another ledger's, or was altered.
        """
        if self.ledger != ledger or not self.signed_by(key):
            raise LedgerMismatch(
                "head must be one that this ledger exported, got one of another ledger or an altered one; "
                "pass the head as Ledger.head() gave it"
            )

    def to_json(self) -> str:
        """Return the head as one line of JSON.

        Returns
        -------
        str
            Of the format ``sfumato.ledger-head``.
        """
        return canonical(FORMAT.wrap(_RECORD.encode(self)))

    @classmethod
    def from_json(cls, text: str) -> ChainHead:
        """Read a head that `to_json` wrote.

        Parameters
        ----------
        text : str
            What `to_json` wrote.

        Returns
        -------
        ChainHead

        Raises
        ------
        ParameterError
            The text is not a head.
        """
        name = "text of an exported head"
        _, fields = FORMAT.unwrap(name, parse(name, text))
        return _RECORD.decode(name, fields)

    def _mac_under(self, key: bytes) -> str:
        fields = {name: value for name, value in _RECORD.encode(self).items() if name != "mac"}
        return keyed(key, "head", canonical(FORMAT.wrap(fields)))


_RECORD: Final[Record[ChainHead]] = Record(
    "a chain head",
    ChainHead,
    {
        "ledger": TEXT,
        "position": INTEGER,
        "charges": INTEGER,
        "digest": TEXT,
        "claimed_steps": Field("steps", INTEGER),
        "mac": TEXT,
    },
)
