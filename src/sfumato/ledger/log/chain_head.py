"""The exported head: the one thing kept elsewhere that makes a roll-back visible."""

from __future__ import annotations

import hmac
import json
from dataclasses import asdict, dataclass, replace

from sfumato import _check
from sfumato.ledger.identity import keyed
from sfumato.ledger.log.hash_chain import canonical

__all__ = ["ChainHead"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainHead:
    """Where a ledger's chain stood when the head was exported.

    A ledger is one file, and a file can be put back as it was last week, together with everything in it
    that could tell. Only a value kept outside the file shows that: keep heads where those who can write the
    ledger cannot, and pass the latest one to `Ledger.verify`.

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
        How many steps of training runs were claimed in all, which stand beside the chain.
    mac : str
        HMAC-SHA-256 of the other fields under the ledger's key: a head that was made up is refused.

    Examples
    --------
    >>> head = ChainHead.signed(bytes(32), ledger="ab", position=3, charges=2, digest="cd")
    >>> ChainHead.from_json(head.to_json()) == head, head.signed_by(bytes(32)), head.signed_by(bytes(31) + b"!")
    (True, True, False)
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
        """Return the head with its MAC under ``key``."""
        unsigned = cls(ledger=ledger, position=position, charges=charges, digest=digest, mac="", steps=steps)
        return replace(unsigned, mac=unsigned._mac_under(key))

    def signed_by(self, key: bytes) -> bool:
        """Whether the MAC is that of the other fields under ``key``."""
        return hmac.compare_digest(self._mac_under(key).encode(), self.mac.encode("utf-8", "surrogatepass"))

    def to_json(self) -> str:
        """Return the head as one line of JSON."""
        return canonical(self._fields())

    @classmethod
    def from_json(cls, text: str) -> ChainHead:
        """Read a head that `to_json` wrote.

        Raises
        ------
        ParameterError
            The text is not a head.
        """
        rule = "be the JSON of an exported head"
        try:
            fields = json.loads(text)
        except (TypeError, ValueError):
            fields = None
        shape = {"ledger": str, "position": int, "charges": int, "digest": str, "mac": str}
        whole = isinstance(fields, dict) and {"steps": 0, **fields}
        if not whole or {name: type(value) for name, value in whole.items()} != shape | {"steps": int}:
            _check.refuse("text", rule, text, "pass what ChainHead.to_json() wrote")
        return cls(**whole)

    def _fields(self) -> dict[str, object]:
        """Return the fields; a head of a ledger without runs is written as it always was."""
        return {name: value for name, value in asdict(self).items() if name != "steps" or value}

    def _mac_under(self, key: bytes) -> str:
        fields = {name: value for name, value in self._fields().items() if name != "mac"}
        return keyed(key, "head", canonical(fields))
