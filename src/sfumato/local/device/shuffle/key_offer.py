"""Which key of a shuffler a device seals for: the collection's own, or one that the device has pinned.

A shuffler changes its key while a collection goes on, so that who steals a key later opens little recorded
traffic. It offers the new one to devices. An offer comes over the network, from the party that is not to be
trusted with a key of anybody's choice; so a device takes it only if it has the key's id already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from sfumato import _check
from sfumato._wire import Format
from sfumato.crypto.hpke import PublicKey
from sfumato.errors import ParameterError
from sfumato.local.device.shuffle.collection import PublicCollection
from sfumato.local.device.shuffle.sparse_collection import SparseCollection

__all__ = ["key_offer", "offered_key"]

_FORMAT: Final = Format("sfumato.shuffler-keys")
_MOST: Final = 64


def key_offer(
    collection: PublicCollection | SparseCollection,
    current: PublicKey | None,
    keys: Iterable[tuple[PublicKey, datetime | None]],
) -> dict[str, Any]:
    """Return what a service states of a collection's keys, as JSON.

    Parameters
    ----------
    collection : PublicCollection or SparseCollection
    current : PublicKey or None
        To seal for now; None if none opens any more.
    keys : iterable of PublicKey and datetime or None
        All that open, and until when.
    """
    each = [
        {
            "id": key.id,
            "key": key.to_text(),
            "until": None if until is None else until.astimezone(UTC).isoformat(),
        }
        for key, until in keys
    ]
    offered = None if current is None else current.id
    return _FORMAT.wrap({"collection": collection.id.hex(), "offered": offered, "keys": each})


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
    given: object = pins
    if isinstance(given, str) or not isinstance(given, Collection):
        _check.refuse_type("pins", "be a collection of ids", given, "pass [key.id]")
    _, parts = _FORMAT.unwrap("offer", offer)
    if parts.get("collection") != collection.id.hex():
        raise ParameterError("offer must be of this collection, got another's; check the URL")
    keys = parts.get("keys")
    if not isinstance(keys, list) or len(keys) > _MOST or not all(isinstance(key, dict) for key in keys):
        raise ParameterError(f"offer must list at most {_MOST} keys, got something else; check the URL")
    wanted = parts.get("offered")
    text = next((key.get("key") for key in keys if key.get("id") == wanted), None)
    if not isinstance(wanted, str) or not isinstance(text, str):
        raise ParameterError("offer must name one of its keys, got none; no report is taken any more")
    found = PublicKey.from_text(text, "shuffler")
    if found.id != wanted:
        raise ParameterError("offer must give each key its own id, got another; check the URL")
    if found != collection.shuffler and found.id not in pins:
        _check.refuse("offer", "be of a key that is pinned", found.id, "update the program that has the pins")
    return found
