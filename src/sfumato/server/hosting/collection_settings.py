"""The collections of a TOML file: what each asks, when it takes reports, and with which keys."""

from __future__ import annotations

import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn, final

from sfumato import _check
from sfumato.crypto.hpke import PublicKey
from sfumato.crypto.secret_key import SecretKey
from sfumato.local.device.base.public_question import PublicQuestion
from sfumato.local.device.shuffle.collection import PublicCollection
from sfumato.local.device.shuffle.sparse_collection import SparseCollection
from sfumato.local.protocol_file import protocol_from_document
from sfumato.server.collector import Collector
from sfumato.server.hosting.toml_table import Table, positive_integer, rate, several, text, under
from sfumato.server.local_collector import LocalCollector
from sfumato.server.periods.analyst_keys import AnalystKey, AnalystKeys
from sfumato.server.periods.collection_window import CollectionWindow, time_with_offset
from sfumato.server.periods.key_ring import KeyRing, ShufflerKey
from sfumato.server.periods.timed_key import TimedKey
from sfumato.server.shuffler import Shuffler, collection_of

__all__ = ["BATCH_SIZE", "PLAIN", "SHUFFLED", "CollectionKind", "CollectionSettings", "read_collections"]

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_TAKEN: Final = ("v1", "healthz", "metrics", "counters")
_KEYS: Final = ("file", "environment", "public", "offered", "until")
_ANALYST_KEYS: Final = ("public", "offered", "until")
_LONGEST: Final = 1 << 28
BATCH_SIZE: Final = 1000
"""Devices whose reports are written out together, unless a file says another number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionSettings(ABC):
    """One collection of a process.

    Parameters
    ----------
    name : str
        Before its paths, and of its folder.
    window : CollectionWindow
        When it takes reports.
    rate : float or None
        Maximum number of reports a second; None for the service's.
    document : mapping
        What the service states to devices.
    """

    name: str
    window: CollectionWindow
    rate: float | None
    document: Mapping[str, Any] = field(repr=False)

    @property
    @abstractmethod
    def identity(self) -> tuple[object, ...]:
        """What must stay the same while a process has the collection open; first of all its id."""

    @abstractmethod
    def open(self, folder: Path) -> Collector:
        """Return its collector, on its own folder."""

    def renew(self, collector: Collector) -> None:
        """Change of an open collector what may change: its keys."""
        return

    def keys_in_time(self) -> tuple[TimedKey, ...]:
        """Return the keys of all parties, each party's the oldest first."""
        return ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Shuffled(CollectionSettings):
    collection: PublicCollection | SparseCollection
    keys: KeyRing
    analysts: AnalystKeys

    @property
    def identity(self) -> tuple[object, ...]:
        return (self.collection.id,)

    def open(self, folder: Path) -> Collector:
        return Shuffler(self.collection, self.keys, folder, self.analysts)

    def renew(self, collector: Collector) -> None:
        if isinstance(collector, Shuffler):
            collector.change_keys(self.keys, self.analysts)

    def keys_in_time(self) -> tuple[TimedKey, ...]:
        return (*self.keys.keys, *self.analysts.keys)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Plain(CollectionSettings):
    question: PublicQuestion
    batch_size: int

    @property
    def identity(self) -> tuple[object, ...]:
        return (self.question.id, self.batch_size)

    def open(self, folder: Path) -> Collector:
        return LocalCollector(self.question, folder, self.batch_size)


@final
@dataclass(frozen=True, slots=True)
class CollectionKind:
    """What the collections of a service are.

    Parameters
    ----------
    known : tuple of str
        The keys of their tables.
    read : callable
        Makes the settings of a table; takes those that all collections have, by name.
    """

    known: tuple[str, ...]
    read: Callable[[Table, dict[str, Any]], CollectionSettings]


def read_collections(file: Table, kind: CollectionKind) -> dict[str, CollectionSettings]:
    """Return the collections of a file, by name.

    Raises
    ------
    ParameterError
        If there are none, a name is none that a URL can have, two are the same collection, or a setting
        breaks its rule.
    """
    where = file.where("collections")
    tables = file.values.get("collections")
    if not isinstance(tables, dict) or not tables:
        _check.refuse_state(where, "state a collection", "there is none", "begin one by [collections.NAME]")
    outer = Table(file.file, "collections", tables, tuple(tables))
    found: dict[str, CollectionSettings] = {}
    known: dict[object, str] = {}
    for name in tables:
        if not _NAME.fullmatch(name) or name in _TAKEN:
            rule = f"name each with a-z, 0-9 and -, at most 64 of them, and not {', '.join(_TAKEN)}"
            _check.refuse(where, rule, name, "choose such a name")
        made = _read(name, outer.table(name, kind.known), kind)
        twin = known.setdefault(made.identity[0], name)  # of two stores, each would count a device
        if twin != name:
            remedy = "leave one out, or make another collection"
            _check.refuse_state(outer.where(name), "be another collection", f"it is that of {twin}", remedy)
        found[name] = made
    return found


def _read(name: str, table: Table, kind: CollectionKind) -> CollectionSettings:
    not_before, expires = table.get("not-before", time_with_offset), table.get("expires", time_with_offset)
    with under(table.where()):
        window = CollectionWindow(not_before=not_before, expires=expires)
    return kind.read(table, {"name": name, "window": window, "rate": table.get("rate", rate)})


def _read_shuffled(table: Table, common: dict[str, Any]) -> CollectionSettings:
    document = _document(table, "name the file that `sfumato shuffle collection` wrote")
    with under(table.where("file")):
        collection = collection_of(document)
    single, listed = "key" in table.values, "keys" in table.values
    if single == listed:
        rule = f"state one key, or a list in [[{table.path}.keys]]"
        _check.refuse_state(
            table.where(), rule, "both are there" if single else "there is neither", "state one"
        )
    if single:
        with under(table.where("key")):
            keys = KeyRing.of(SecretKey.from_file(_place(table, "key"), "shuffler"))
    else:
        each = [_read_key(one) for one in several(table, "keys", _KEYS)]
        with under(table.where("keys")):
            keys = KeyRing(each)
    with under(table.where("key" if single else "keys")):
        keys.check(collection)
    analysts = _read_analysts(table, collection.analyst)
    with under(table.where("analyst-keys")):
        analysts.check(collection, keys.public)
    return _Shuffled(**common, document=document, collection=collection, keys=keys, analysts=analysts)


def _read_analysts(table: Table, own: PublicKey) -> AnalystKeys:
    """Return the analyst's keys that a table lists, or the collection's own alone."""
    if "analyst-keys" not in table.values:
        return AnalystKeys.of(own)
    each = []
    for one in several(table, "analyst-keys", _ANALYST_KEYS):
        line = one.required("public", text, "pass the line that `sfumato shuffle keygen analyst` printed")
        offered, until = one.get("offered", time_with_offset), one.get("until", time_with_offset)
        with under(one.where()):
            public = PublicKey.from_text(line, "analyst")
            each.append(AnalystKey(public=public, offered=offered, until=until))
    with under(table.where("analyst-keys")):
        return AnalystKeys(each)


def _read_key(table: Table) -> ShufflerKey:
    """Return one key: its secret half, or the public half of one that was destroyed."""
    places = [name for name in ("file", "environment", "public") if name in table.values]
    if len(places) != 1:
        rule = "state one of file, environment and public"
        found = f"{' and '.join(places)} are there" if places else "there is none"
        _check.refuse_state(table.where(), rule, found, "state where the key is")
    where = table.where(places[0])
    given = table.required(places[0], text, "state where the key is")
    secret: SecretKey | None = None
    with under(where):
        if places[0] == "public":
            public = PublicKey.from_text(given, "shuffler")
        else:
            secret = _secret(table, given) if places[0] == "environment" else None
            if secret is None:
                secret = SecretKey.from_file(table.file.parent / given, "shuffler")
            public = secret.public
    offered, until = table.get("offered", time_with_offset), table.get("until", time_with_offset)
    with under(table.where()):
        return ShufflerKey(public=public, secret=secret, offered=offered, until=until)


def _secret(table: Table, variable: str) -> SecretKey:
    if not _VARIABLE.fullmatch(variable):
        remedy = "name the variable; the key itself does not belong into this file"
        _check.refuse_type(table.where("environment"), "be the name of a variable", variable, remedy)
    if not os.environ.get(variable):
        rule = "name a variable of the environment that is set"
        _check.refuse(table.where("environment"), rule, variable, "set it before the process starts")
    return SecretKey.from_text(os.environ[variable].strip() + "\n", "shuffler", variable)


def _read_plain(table: Table, common: dict[str, Any]) -> CollectionSettings:
    document = _document(table, "name the file that `sfumato local plan` wrote")
    protocol = protocol_from_document(table.where("file"), document)
    title = table.get("name", text, common["name"])
    size = table.get("batch-size", positive_integer, BATCH_SIZE)
    if size < 2:
        _check.refuse(table.where("batch-size"), "be at least 2", size, "nobody is mixed with fewer")
    with under(table.where()):
        question = PublicQuestion(randomizer=protocol.device, name=title)
    return _Plain(**common, document=question.specification(), question=question, batch_size=size)


SHUFFLED: Final = CollectionKind(
    ("file", "key", "keys", "analyst-keys", "not-before", "expires", "rate"), _read_shuffled
)
"""Collections of ``sfumato shuffle serve``."""

PLAIN: Final = CollectionKind(("file", "name", "batch-size", "not-before", "expires", "rate"), _read_plain)
"""Collections of ``sfumato local serve``."""


def _place(table: Table, name: str) -> Path:
    return table.file.parent / str(table.required(name, text, "name a file"))


def _document(table: Table, remedy: str) -> dict[str, Any]:
    """Return the JSON object of the file that a table names."""
    where = table.where("file")
    path = table.file.parent / table.required("file", text, remedy)
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_LONGEST))
    except OSError as error:
        _refuse_file(where, path, (error.strerror or "a failure").lower())
    except (ValueError, RecursionError):
        _refuse_file(where, path, "it holds no JSON")
    if not isinstance(content, dict):
        _refuse_file(where, path, "it holds no JSON object")
    return content


def _refuse_file(where: str, path: Path, why: str) -> NoReturn:
    _check.refuse(where, f"be a file that can be read ({why})", str(path), "check the path")
