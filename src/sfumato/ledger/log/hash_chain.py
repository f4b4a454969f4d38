"""The chain: every event of a ledger is hashed together with the hash of the one before it.

An event's body is canonical JSON (sorted keys, no white space, ASCII only, no NaN), so equal contents have
equal bytes and a hash can be computed again by any program. Changing, dropping or swapping events breaks a
link; dropping events at the end breaks none, which is what an exported :class:`~sfumato.ledger.ChainHead` is for.

The hash carries no key: whoever can write the file holds the ledger's key as well, so a key would add
nothing against them.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["GENESIS", "Event", "canonical", "decode_number", "encode_number", "link"]

GENESIS = "0" * 64
"""What stands for the hash before the first event."""


class Event(NamedTuple):
    """One link of the chain.

    ``charge`` is the number of the charge that the event records or commits, None for an event about the
    ledger itself.
    """

    position: int
    kind: str
    charge: int | None
    body: str
    previous: str
    digest: str

    @property
    def content(self) -> dict[str, Any]:
        """The body, parsed."""
        content: dict[str, Any] = json.loads(self.body)
        return content

    @property
    def intact(self) -> bool:
        """Whether the event still has the hash that it was written with."""
        return self == link(self.position, self.kind, self.charge, self.body, self.previous)


def canonical(content: Mapping[str, object]) -> str:
    """Return the one JSON text of ``content``.

    >>> canonical({"b": 0.1, "a": [1, "x"]})
    '{"a":[1,"x"],"b":0.1}'
    """
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def link(position: int, kind: str, charge: int | None, body: str, previous: str) -> Event:
    """Return the event with its hash, which covers every column and the hash before it."""
    # The four short fields hold no newline, so the text splits in one way only.
    text = f"{previous}\n{position}\n{kind}\n{'' if charge is None else charge}\n{body}"
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return Event(position, kind, charge, body, previous, digest)


def encode_number(value: float) -> float | str:
    """Return what stands for ``value`` in canonical JSON: itself, or ``"inf"``, which JSON does not have."""
    return value if math.isfinite(value) else str(value)


def decode_number(value: float | str) -> float:
    """Return the number that `encode_number` wrote."""
    return float(value)
