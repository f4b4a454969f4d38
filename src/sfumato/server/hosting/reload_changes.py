"""What a reload changed, for the operator's log: names of collections, and ids of keys, which are public."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.server.hosting.collection_settings import CollectionSettings
from sfumato.server.periods.timed_key import TimedKey

__all__ = ["reload_changes", "reload_message"]

Settings = Mapping[str, CollectionSettings]


def reload_changes(before: Settings, after: Settings) -> dict[str, Any]:
    """Return the facts of a reload's line.

    Parameters
    ----------
    before, after : mapping of str to CollectionSettings
        By name.

    Returns
    -------
    dict
        Names of the collections that there are, that were opened, that were closed, and whose times changed.
        And under ``"keys"``, for each collection of which a key changed, the keys that were ``"added"``,
        ``"removed"``, or ``"changed"``, which are those at another place, with other times, or whose secret
        half came or went: each as its party and its id.
    """
    both = [name for name in after if name in before]
    keys = {name: _keys(before[name].keys_in_time(), after[name].keys_in_time()) for name in both}
    return {
        "collections": list(after),
        "opened": [name for name in after if name not in before],
        "closed": [name for name in before if name not in after],
        "times": [name for name in both if after[name].window != before[name].window],
        "keys": {name: changed for name, changed in keys.items() if changed},
    }


def _keys(before: tuple[TimedKey, ...], after: tuple[TimedKey, ...]) -> dict[str, list[str]]:
    old, new = ({f"{key.role()} {key.public.id}": key for key in keys} for keys in (before, after))
    stayed = [name for name in old if name in new], [name for name in new if name in old]
    moved = {name for one, other in zip(*stayed, strict=True) if one != other for name in (one, other)}
    lists = {
        "added": [name for name in new if name not in old],
        "removed": [name for name in old if name not in new],
        "changed": [name for name in stayed[1] if name in moved or not new[name].like(old[name])],
    }
    return {what: names for what, names in lists.items() if names}


def reload_message(facts: Mapping[str, Any]) -> str:
    """Return the same in words; of the ids, the first 16 digits."""
    parts = [f"collections: {', '.join(facts['collections'])}"]
    parts += [f"{what}: {', '.join(facts[what])}" for what in ("opened", "closed", "times") if facts[what]]
    for name, changed in facts["keys"].items():
        for what, keys in changed.items():
            short = ", ".join(key[: key.index(" ") + 17] for key in keys)
            parts.append(f"keys {what} of {name}: {short}")
    return "; ".join(parts)
