"""An analyst's keys over time: the one that records are to be sealed for, and those whose reports are taken.

A service has their public halves alone, so that nothing is destroyed here: the analyst destroys a secret half
once its reports are opened.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, final

from sfumato import _check
from sfumato.crypto.hpke import PublicKey
from sfumato.errors import ParameterError
from sfumato.local.device.shuffle.collection import PublicCollection
from sfumato.local.device.shuffle.sparse_collection import SparseCollection
from sfumato.server.periods.timed_key import TimedKey, check_keys, in_use, offered_of

__all__ = ["AnalystKey", "AnalystKeys"]

_MOST: Final = 8
_MOST_IN_USE: Final = 4
"""Keys whose reports are taken at a time: each is one more attempt to open what nobody sealed."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AnalystKey(TimedKey):
    """One key of the analyst and its times; see `TimedKey`."""

    @staticmethod
    def role() -> str:
        """``"analyst"``."""
        return "analyst"


@final
class AnalystKeys:
    """All keys of one collection's analyst, the oldest first.

    Parameters
    ----------
    keys : sequence of AnalystKey
        At most 8, each once, of which at most 4 are in use at a time. The last of those whose time has come
        is the offered one.
    now : callable
        Seconds since 1970.

    Raises
    ------
    ParameterError
        If there are none or too many, or one is there twice.
    """

    __slots__ = ("_now", "keys")

    def __init__(self, keys: Sequence[AnalystKey], now: Callable[[], float] = time.time) -> None:
        self.keys, self._now = tuple(keys), now
        check_keys(self.keys, _MOST)
        if (used := len(in_use(self.keys, now()))) > _MOST_IN_USE:
            rule = f"be at most {_MOST_IN_USE} whose time is not over"
            _check.refuse("keys", rule, used, "state until when the older ones are used")

    @staticmethod
    def of(key: PublicKey) -> AnalystKeys:
        """Return the one key that is in use for good."""
        return AnalystKeys([AnalystKey(public=key)])

    def check(self, collection: PublicCollection | SparseCollection, shufflers: Sequence[PublicKey]) -> None:
        """Refuse keys of which none is the collection's own, or one is a shuffler's."""
        if all(key.public != collection.analyst for key in self.keys):
            raise ParameterError(
                "keys must have that of the collection's analyst among them, got others; add it, "
                "with until if it is used no more"
            )
        points = {each.point for each in shufflers}
        if any(key.public.point in points for key in self.keys):
            _check.refuse_state("keys", "be others than the shuffler's", "one is that", "make one for each")

    @property
    def public(self) -> tuple[PublicKey, ...]:
        """All keys, also those that are not in use."""
        return tuple(key.public for key in self.keys)

    def in_use(self) -> tuple[PublicKey, ...]:
        """Return the keys for which reports are taken, the newest first."""
        return tuple(key.public for key in reversed(in_use(self.keys, self._now())))

    def offered(self) -> tuple[PublicKey | None, list[tuple[PublicKey, datetime | None]]] | None:
        """Return what devices are to know, for `key_offer`; None where the key never changes."""
        if len(self.keys) == 1 and self.keys[0].until is None:
            return None
        now = self._now()
        each = [(key.public, key.until) for key in in_use(self.keys, now)]
        return offered_of(self.keys, now), each
