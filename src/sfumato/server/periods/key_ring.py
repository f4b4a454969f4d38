"""A shuffler's keys over time: the one that devices are offered, and those that still open."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, final

from sfumato import _check
from sfumato.crypto.hpke import PublicKey
from sfumato.crypto.secret_key import SecretKey
from sfumato.errors import ParameterError
from sfumato.local.device.shuffle.collection import PublicCollection
from sfumato.local.device.shuffle.key_offer import key_offer
from sfumato.local.device.shuffle.sparse_collection import SparseCollection
from sfumato.server.periods.collection_window import optional_time

__all__ = ["KeyRing", "ShufflerKey"]

_MOST: Final = 8
"""Keys of a ring: each that opens costs an attempt for an envelope that no other one opened."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShufflerKey:
    """One key and its times.

    Parameters
    ----------
    public : PublicKey
    secret : SecretKey, optional
        None for a key that was destroyed: its time must be over.
    offered : datetime, optional
        From when on devices are offered it; always, by default.
    until : datetime, optional
        When it opens no envelope any more; never, by default.
    """

    public: PublicKey
    secret: SecretKey | None = None
    offered: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        for name in ("offered", "until"):
            optional_time(name, getattr(self, name))
        if self.public.role != "shuffler":
            _check.refuse("key", "be a shuffler's", self.public.role, "make one with role shuffler")
        if self.secret is None and self.until is None:
            _check.refuse_state(
                "key", "be secret", "only its public half is given", "state until when it opened"
            )
        if self.offered is not None and self.until is not None and self.until <= self.offered:
            shown = self.until.isoformat()
            _check.refuse("until", f"be after offered {self.offered.isoformat()}", shown, "correct one")


@final
class KeyRing:
    """All keys of one collection's shuffler, the oldest first.

    Parameters
    ----------
    keys : sequence of ShufflerKey
        At most 8, each once. The last of those whose time has come is the offered one.
    now : callable
        Seconds since 1970.

    Raises
    ------
    ParameterError
        If there are none or more than 8, one is there twice, or one that still opens has no secret half.
    """

    __slots__ = ("_keys", "_now")

    def __init__(self, keys: Sequence[ShufflerKey], now: Callable[[], float] = time.time) -> None:
        self._keys, self._now = tuple(keys), now
        if not 1 <= len(self._keys) <= _MOST:
            rule = f"be 1 to {_MOST}"
            _check.refuse("keys", rule, len(self._keys), "leave out those that open no more")
        if len({key.public.point for key in self._keys}) < len(self._keys):
            _check.refuse_state("keys", "be different", "one is there twice", "leave it out")
        for key in self._keys:
            if key.secret is None and not self._over(key):
                remedy = "name the file of its secret half"
                _check.refuse_state(
                    "key", "be secret while it opens", "only its public half is given", remedy
                )

    @staticmethod
    def of(key: SecretKey) -> KeyRing:
        """Return the ring of one key that opens for good."""
        return KeyRing([ShufflerKey(public=key.public, secret=key)])

    def check(self, collection: PublicCollection | SparseCollection) -> None:
        """Refuse keys of which none is the collection's own, or one is the analyst's."""
        if all(key.public != collection.shuffler for key in self._keys):
            raise ParameterError("key must be that of the collection's shuffler, got another; use that one")
        if any(key.public.point == collection.analyst.point for key in self._keys):
            _check.refuse_state("key", "be another than the analyst's", "it is that one", "make one for each")

    def _over(self, key: ShufflerKey) -> bool:
        return key.until is not None and self._now() >= key.until.timestamp()

    def opened(self, sealed: bytes, context: bytes) -> bytes | None:
        """Return a message that was sealed for a key whose time is not over; None if there is no such key."""
        for key in reversed(self._keys):
            if key.secret is not None and not self._over(key):
                found = key.secret.opened(sealed, context)
                if found is not None:
                    return found
        return None

    def offer(self, collection: PublicCollection | SparseCollection) -> dict[str, Any]:
        """Return what devices are to know of the keys, as JSON: see `key_offer`."""
        open_now = [key for key in self._keys if not self._over(key)]
        now = self._now()
        begun = [key for key in open_now if key.offered is None or key.offered.timestamp() <= now]
        current = begun[-1].public if begun else None
        return key_offer(collection, current, [(key.public, key.until) for key in open_now])
