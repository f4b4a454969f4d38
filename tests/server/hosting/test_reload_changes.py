"""What a reload says that it changed: names and ids of keys, and nothing secret."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sfumato.server.hosting.collection_settings import SHUFFLED
from sfumato.server.hosting.configuration import Configuration
from sfumato.server.hosting.reload_changes import reload_changes, reload_message
from tests.server.hosting.test_collections_service import FUTURE, LATER, NEW, OLD, PAST, table, write
from tests.server.setting import SHUFFLER

DESTROYED = f'[[collections.week-7.keys]]\npublic = "{SHUFFLER.public.to_text()}"\nuntil = {PAST}\n'


def read(folder: Path, *tables: str) -> Any:
    file = write(folder, *tables)
    return Configuration(file=file, kind=SHUFFLED, options={}, environment={}, default_port=0).read()[1]


def test_keys_that_came_went_or_changed_are_named_by_id(tmp_path: Path) -> None:
    seven, old, new = table("week-7"), f"shuffler {SHUFFLER.public.id}", f"shuffler {LATER.public.id}"
    first = read(tmp_path, seven, OLD)
    for tables, changed in (
        ((seven, OLD), {}),
        ((seven, OLD, f"until = {FUTURE}\n", NEW), {"added": [new], "changed": [old]}),
        ((seven, NEW, OLD), {"added": [new]}),
        ((seven, OLD, f"offered = {PAST}\n"), {"changed": [old]}),
        ((seven, DESTROYED, NEW), {"added": [new], "changed": [old]}),
    ):
        after = read(tmp_path, *tables)
        assert reload_changes(first, after)["keys"] == ({"week-7": changed} if changed else {})
    turned = reload_changes(read(tmp_path, seven, OLD, NEW), read(tmp_path, seven, NEW, OLD))
    assert turned["keys"] == {"week-7": {"changed": [new, old]}}
    gone = reload_changes(read(tmp_path, seven, OLD, NEW), read(tmp_path, seven, OLD))
    assert gone["keys"] == {"week-7": {"removed": [new]}}
    eight = table("week-8", 'key = "old.key"')
    late = table("week-7", f"expires = {FUTURE}")
    facts = reload_changes(read(tmp_path, seven, OLD, NEW, eight), read(tmp_path, late, NEW, DESTROYED))
    assert reload_message(facts) == (
        f"collections: week-7; closed: week-8; times: week-7; keys changed of week-7: {new[:25]}, {old[:25]}"
    )
    said = json.dumps(facts) + reload_message(facts)
    assert not any(key.seed.hex() in said or key.word.decode() in said for key in (SHUFFLER, LATER))
    assert reload_changes({}, first) == {
        "collections": ["week-7"], "opened": ["week-7"], "closed": [], "times": [], "keys": {},
    }  # fmt: skip
