"""A shuffler's keys over time: the one that devices are offered, and those that still open."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from sfumato import _check
from sfumato.crypto.hpke import PublicKey
from sfumato.crypto.secret_key import SecretKey
from sfumato.errors import ParameterError
from sfumato.local.device.shuffle.collection import PublicCollection
from sfumato.local.device.shuffle.key_offer import key_offer
from sfumato.local.device.shuffle.sparse_collection import SparseCollection
from sfumato.server.periods.analyst_keys import AnalystKeys
from sfumato.server.periods.timed_key import TimedKey, check_keys, in_use, offered_of

__all__ = ["KeyRing", "ShufflerKey"]

_MOST: Final = 8
"""Keys of a ring: each that opens costs an attempt for an envelope that no other one opened."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShufflerKey(TimedKey):
    """One key and its times: see `TimedKey`. After ``until`` it opens no envelope any more.

    Parameters
    ----------
    secret : SecretKey, optional
        None for a key that was destroyed: its time must be over.
    """

    secret: SecretKey | None = None

    def __post_init__(self) -> None:
        super(ShufflerKey, self).__post_init__()
        if self.secret is None and self.until is None:
            _check.refuse_state(
                "key", "be secret", "only its public half is given", "state until when it opened"
            )

    @staticmethod
    def role() -> str:
        """``"shuffler"``."""
        return "shuffler"

    def like(self, other: TimedKey) -> bool:
        """Report whether another one is the same key, or half of it, at the same times."""
        same = isinstance(other, ShufflerKey) and (self.secret is None) == (other.secret is None)
        return same and super(ShufflerKey, self).like(other)


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

    __slots__ = ("_now", "keys")

    def __init__(self, keys: Sequence[ShufflerKey], now: Callable[[], float] = time.time) -> None:
        self.keys, self._now = tuple(keys), now
        check_keys(self.keys, _MOST)
        for key in in_use(self.keys, now()):
            if key.secret is None:
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
        if all(key.public != collection.shuffler for key in self.keys):
            raise ParameterError("key must be that of the collection's shuffler, got another; use that one")
        if any(key.public.point == collection.analyst.point for key in self.keys):
            _check.refuse_state("key", "be another than the analyst's", "it is that one", "make one for each")

    @property
    def public(self) -> tuple[PublicKey, ...]:
        """All keys, also those that open no more."""
        return tuple(key.public for key in self.keys)

    def opened(self, sealed: bytes, contexts: Sequence[bytes]) -> tuple[bytes, int] | None:
        """Return a message that was sealed for a key whose time is not over, and the index of its context.

        None if there is no such key or context.
        """
        for key in reversed(in_use(self.keys, self._now())):
            for at, context in enumerate(contexts):
                found = None if key.secret is None else key.secret.opened(sealed, context)
                if found is not None:
                    return found, at
        return None

    def offer(
        self, collection: PublicCollection | SparseCollection, analyst: AnalystKeys | None = None
    ) -> dict[str, Any]:
        """Return what devices are to know of both parties' keys, as JSON: see `key_offer`."""
        now = self._now()
        each = [(key.public, key.until) for key in in_use(self.keys, now)]
        offered = None if analyst is None else analyst.offered()
        return key_offer(collection, offered_of(self.keys, now), each, offered)
