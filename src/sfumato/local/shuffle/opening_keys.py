"""The analyst's secret keys that open a collection: its own, or all that were used in its course."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sfumato import _check
from sfumato.crypto.secret_key import SecretKey
from sfumato.errors import ParameterError
from sfumato.local.device.shuffle.collection import PublicCollection

__all__ = ["Keys", "checked_keys"]

Keys = SecretKey | Sequence[SecretKey]

_MOST: Final = 8


def checked_keys(key: object, known: PublicCollection) -> tuple[SecretKey, ...]:
    """Return the analyst's keys: its own of the collection, or a list of those of its course."""
    if not isinstance(key, Sequence):
        if not isinstance(key, SecretKey):
            _check.instance("key", key, SecretKey, "use SecretKey.from_file")
        elif key.public == known.analyst:
            return (key,)
        raise ParameterError(
            "key must be that of the collection's analyst, got another; use that one, "
            "or pass a list of later keys"
        )
    if not 1 <= len(key) <= _MOST:
        _check.refuse("key", f"be 1 to {_MOST} keys", len(key), "pass those of this collection")
    for each in key:
        _check.instance("key", each, SecretKey, "use SecretKey.from_file")
        if each.role != "analyst":
            _check.refuse("key", "be an analyst's", each.role, "pass those of the collection's analyst")
    if len({each.public.point for each in key}) < len(key):
        _check.refuse_state("keys", "be different", "one is there twice", "leave it out")
    return tuple(key)
