"""Which keys a device seals for: the collection's own, or those that the device has pinned.

Shuffler and analyst change their keys while a collection goes on, so that who steals one later opens little
of what was recorded. The shuffler offers the new ones to devices. An offer comes over the network, from the
party that is not to be trusted with a key of anybody's choice; so a device takes it only if it has the key's
id already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from sfumato import _check
from sfumato._wire import Format
from sfumato.crypto.hpke import PublicKey
from sfumato.errors import ParameterError
from sfumato.local.device.shuffle.collection import PublicCollection, later_analyst
from sfumato.local.device.shuffle.sparse_collection import SparseCollection

__all__ = ["key_offer", "offered_analyst_key", "offered_key"]

_FORMAT: Final = Format("sfumato.shuffler-keys")
_MOST: Final = 64

TimedKeys = Iterable[tuple[PublicKey, datetime | None]]


def key_offer(
    collection: PublicCollection | SparseCollection,
    current: PublicKey | None,
    keys: TimedKeys,
    analyst: tuple[PublicKey | None, TimedKeys] | None = None,
) -> dict[str, Any]:
    """Return what a service states of a collection's keys, as JSON.

    Parameters
    ----------
    collection : PublicCollection or SparseCollection
    current : PublicKey or None
        To seal for now; None if none opens any more.
    keys : iterable of PublicKey and datetime or None
        All that open, and until when.
    analyst : tuple, optional
        The same of the analyst: the key to seal records for now, and all whose reports are taken. Left out
        where it is the collection's own alone.
    """
    offer = _FORMAT.wrap({"collection": collection.id.hex(), **_listed(current, keys)})
    return offer if analyst is None else offer | {"analyst": _listed(*analyst)}


def _listed(current: PublicKey | None, keys: TimedKeys) -> dict[str, Any]:
    each = [
        {
            "id": key.id,
            "key": key.to_text(),
            "until": None if until is None else until.astimezone(UTC).isoformat(),
        }
        for key, until in keys
    ]
    return {"offered": None if current is None else current.id, "keys": each}


def offered_key(
    collection: PublicCollection | SparseCollection, offer: Mapping[str, Any], pins: Collection[str] = ()
) -> PublicKey:
    """Return the key that a service offers, if the device may seal for it.

    Parameters
    ----------
    collection : PublicCollection or SparseCollection
        Whose own key needs no pin: its id is a digest of it.
    offer : mapping
        What ``GET /v1/keys`` answered.
    pins : collection of str
        Ids of keys (`PublicKey.id`) that came with the device's program, and not from the service: those that
        the shuffler made ahead. None is added by an offer.

    Returns
    -------
    PublicKey
        To pass to `PublicCollection.envelope` as ``key``.

    Raises
    ------
    ParameterError
        If the offer is of another collection, is malformed, offers nothing, or offers a key that is not
        pinned.

    Notes
    -----
    Guarantee: whatever the service and the network answer, an envelope is sealed for the collection's own key
    or for one that the device's maker pinned. Whether that key is the shuffler's is what the maker vouches
    for, as for the collection's own.

    Examples
    --------
    >>> from sfumato.crypto import SecretKey
    >>> from sfumato.local.device import Domain, RandomizedResponseRandomizer
    >>> own, later = SecretKey.generate("shuffler").public, SecretKey.generate("shuffler").public
    >>> asked = PublicCollection(
    ...     randomizer=RandomizedResponseRandomizer(epsilon=1.0, domain=Domain(["no", "yes"])),
    ...     batch_size=1000,
    ...     analyst=SecretKey.generate("analyst").public,
    ...     shuffler=own,
    ... )
    >>> offer = key_offer(asked, later, [(own, None), (later, None)])
    >>> offered_key(asked, offer, pins=[later.id]) == later
    True
    """
    return _pinned(collection.shuffler, _parts(collection, offer, pins), pins)


def offered_analyst_key(
    collection: PublicCollection, offer: Mapping[str, Any], pins: Collection[str] = ()
) -> PublicKey:
    """Return the analyst's key that a service offers, if the device may seal for it.

    Parameters
    ----------
    collection : PublicCollection
        Whose own key needs no pin, and is the answer where the offer is of none of the analyst's.
    offer, pins
        See `offered_key`; the ids are of keys that the analyst made ahead.

    Returns
    -------
    PublicKey
        To pass to `PublicCollection.envelope` as ``analyst``.

    Raises
    ------
    ParameterError
        As of `offered_key`; or the key is that of a shuffler.

    Notes
    -----
    Guarantee: that of `offered_key`. The shuffler, who makes the offer, must not be able to have records
    sealed for a key of its own: a key is taken only if it names itself the analyst's and its id is pinned.

    Examples
    --------
    >>> from sfumato.crypto import SecretKey
    >>> from sfumato.local.device import Domain, RandomizedResponseRandomizer
    >>> own, later = SecretKey.generate("analyst").public, SecretKey.generate("analyst").public
    >>> shuffler = SecretKey.generate("shuffler").public
    >>> asked = PublicCollection(
    ...     randomizer=RandomizedResponseRandomizer(epsilon=1.0, domain=Domain(["no", "yes"])),
    ...     batch_size=1000,
    ...     analyst=own,
    ...     shuffler=shuffler,
    ... )
    >>> offer = key_offer(asked, shuffler, [(shuffler, None)], (later, [(own, None), (later, None)]))
    >>> offered_analyst_key(asked, offer, pins=[later.id]) == later
    True
    """
    parts = _parts(collection, offer, pins)
    if parts.get("analyst") is None:
        return collection.analyst
    if not isinstance(parts["analyst"], dict):
        raise ParameterError("offer must list the analyst's keys, got something else; check the URL")
    return later_analyst(_pinned(collection.analyst, parts["analyst"], pins), collection.shuffler)


def _parts(
    collection: PublicCollection | SparseCollection, offer: Mapping[str, Any], pins: object
) -> dict[str, Any]:
    """Return the fields of an offer of this collection."""
    if isinstance(pins, str) or not isinstance(pins, Collection):
        _check.refuse_type("pins", "be a collection of ids", pins, "pass [key.id]")
    _, parts = _FORMAT.unwrap("offer", offer)
    if parts.get("collection") != collection.id.hex():
        raise ParameterError("offer must be of this collection, got another's; check the URL")
    return parts


def _pinned(own: PublicKey, parts: Mapping[str, Any], pins: Collection[str]) -> PublicKey:
    """Return the offered one of the keys of one party: its own of the collection, or one that is pinned."""
    keys = parts.get("keys")
    if not isinstance(keys, list) or len(keys) > _MOST or not all(isinstance(key, dict) for key in keys):
        raise ParameterError(f"offer must list at most {_MOST} keys, got something else; check the URL")
    wanted = parts.get("offered")
    text = next((key.get("key") for key in keys if key.get("id") == wanted), None)
    if not isinstance(wanted, str) or not isinstance(text, str):
        raise ParameterError("offer must name one of its keys, got none; no report is taken any more")
    found = PublicKey.from_text(text, own.role)
    if found.id != wanted:
        raise ParameterError("offer must give each key its own id, got another; check the URL")
    if found != own and found.id not in pins:
        _check.refuse("offer", "be of a key that is pinned", found.id, "update the program that has the pins")
    return found
