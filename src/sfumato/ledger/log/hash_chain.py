"""The hash chain: every event of a ledger is hashed together with the hash of the one before it.

An event's body is canonical JSON (sorted keys, no white space, ASCII only, no NaN), so equal contents have
equal bytes and any program can compute a hash again. Changing, dropping or swapping events breaks a link;
dropping events at the end breaks none, which is what an exported :class:`~sfumato.ledger.ChainHead` is for.

The hash has no key: whoever can write the file holds the ledger's key as well, so a key would add nothing
against them.
"""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

from sfumato._wire import INTEGER, TEXT, Record, optional

__all__ = ["EVENT", "GENESIS", "Event", "link"]

GENESIS: Final = "0" * 64
"""What stands for the hash before the first event."""


class Event(NamedTuple):
    """One link of the chain.

    ``charge`` is the number of the charge that the event records or commits, None for an event about the
    ledger itself.

    Parameters
    ----------
    position : int
        The number of the link, from 0.
    kind : str
        What happened, such as "charge".
    charge : int or None
        The number of the charge.
    body : str
        The event's content.
    previous : str
        The hash of the event before, in hexadecimal; `GENESIS` for the first.
    digest : str
        The hash of this event.

    Examples
    --------
    >>> event = Event(0, "opened", None, "{}", GENESIS, "0" * 64)
    >>> event.intact  # the hash does not fit the content
    False
    """

    position: int
    kind: str
    charge: int | None
    body: str
    previous: str
    digest: str

    @property
    def intact(self) -> bool:
        """Whether the event still has the hash that it was written with."""
        return self == link(self.position, self.kind, self.charge, self.body, self.previous)


EVENT: Final[Record[Event]] = Record(
    "an event",
    Event,
    {
        "position": INTEGER,
        "kind": TEXT,
        "charge": optional(INTEGER),
        "body": TEXT,
        "previous": TEXT,
        "digest": TEXT,
    },
)
"""An event as an object: the columns of its row, and a line of an export."""


def link(position: int, kind: str, charge: int | None, body: str, previous: str) -> Event:
    """Return the event with its hash, which covers every column and the hash before it."""
    # The four short fields hold no newline, so the text splits in one way only.
    text = f"{previous}\n{position}\n{kind}\n{'' if charge is None else charge}\n{body}"
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return Event(position, kind, charge, body, previous, digest)
