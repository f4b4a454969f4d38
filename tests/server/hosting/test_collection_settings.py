"""Collections in a file: read whole, and every mistake named by file, key, rule, value and remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sfumato import local
from sfumato.errors import ParameterError
from sfumato.local.protocol_file import protocol_to_document
from sfumato.local.shuffle import SecretKey
from sfumato.server.hosting.collection_settings import PLAIN, SHUFFLED, CollectionKind
from sfumato.server.hosting.configuration import Configuration
from tests.server.setting import ANALYST, SHUFFLER, collection

LATER = SecretKey("shuffler", b"l" * 32)
ORACLE = local.RandomizedResponse(epsilon=2.0, domain=local.Domain(["no", "yes"]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(json.dumps(collection(4, name=name).specification()))
    SHUFFLER.to_file(tmp_path / "old.key")
    LATER.to_file(tmp_path / "new.key")
    ANALYST.to_file(tmp_path / "analyst.key")
    (tmp_path / "p.json").write_text(json.dumps(protocol_to_document(ORACLE)))
    (tmp_path / "none.json").write_text("{")
    (tmp_path / "list.json").write_text("[]")
    return tmp_path


def read(folder: Path, text: str, kind: CollectionKind = SHUFFLED, head: str = 'folder = "s"') -> Any:
    file = folder / "collector.toml"
    file.write_text(f"{head}\n{text}")
    return Configuration(file=file, kind=kind, options={}, environment={}, default_port=0).read()


def test_collections_with_times_and_keys(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEW_KEY", (folder / "new.key").read_text().strip())
    text = f"""
        [collections.week-7]
        file = "a.json"
        not-before = 2027-01-04T00:00:00Z
        expires = 2027-01-11T00:00:00+01:00
        rate = 100
        [[collections.week-7.keys]]
        public = "{SHUFFLER.public.to_text()}"
        until = 2020-01-01T00:00:00Z
        [[collections.week-7.keys]]
        environment = "NEW_KEY"
        offered = 2020-01-01T00:00:00Z
        [collections.week-8]
        file = "b.json"
        key = "old.key"
    """
    service, found = read(folder, text, head='folder = "s"\ndefault = "week-8"')
    assert (list(found), service.default, service.folder) == (["week-7", "week-8"], "week-8", folder / "s")
    seven = found["week-7"]
    assert seven.window.times() == {
        "not_before": "2027-01-04T00:00:00+00:00", "expires": "2027-01-10T23:00:00+00:00",
    }  # fmt: skip
    assert (seven.rate, found["week-8"].rate) == (100.0, None)
    with seven.open(folder / "store") as collector:
        assert collector.key_offer()["offered"] == LATER.public.id
    _, plain = read(folder, '[collections.x]\nfile = "p.json"\n[collections.y]\nfile = "p.json"', PLAIN)
    assert [each.question.name for each in plain.values()] == ["x", "y"]
    assert plain["x"].batch_size == 1000
    given = '[collections.x]\nfile = "p.json"\nname = "week 7"\nbatch-size = 20'
    week = read(folder, given, PLAIN)[1]["x"]
    assert (week.question.name, week.batch_size) == ("week 7", 20)


def test_each_mistake_names_its_place(folder: Path) -> None:
    good = '[collections.a]\nfile = "a.json"\n'
    key = 'key = "old.key"\n'
    keys = "[[collections.a.keys]]\n"
    file = str(folder / "collector.toml")
    for text, told in (
        ("", f"{file}: collections must state a collection, but there is none; begin one by [collections."),
        ("collections = 3", "collections must state a collection"),
        (
            "[collection.a]",
            f"{file} must set what is known here, got 'collection'; did you mean 'collections'?",
        ),
        ("[collections]\na = 3", f"{file}: collections.a must be a table, got a value of type int"),
        ('[collections."A b"]', "collections must name each with a-z, 0-9 and -"),
        ("[collections.v1]", "got 'v1'; choose such a name"),
        (
            good + key + 'expire = ""',
            f"{file}: collections.a must set what is known here, got 'expire'; did you",
        ),
        (
            good,
            f"{file}: collections.a must state one key, or a list in [[collections.a.keys]], but there is n",
        ),
        (good + key + keys, "but both are there; state one"),
        (good + 'key = "none.key"', f"{file}: collections.a.key: the key's file must be readable"),
        (good + 'key = "analyst.key"', f"{file}: collections.a.key: "),
        (
            good + 'key = "new.key"',
            f"{file}: collections.a.key: key must be that of the collection's shuffler",
        ),
        (good + "keys = 3", "collections.a.keys must be an array of tables"),
        (
            good + keys,
            "collections.a.keys[0] must state one of file, environment and public, but there is none",
        ),
        (good + keys + 'file = "old.key"\npublic = "x"', "but file and public are there"),
        (good + keys + 'environment = "NOT_SET_HERE"', "must name a variable of the environment that is set"),
        (good + keys + 'public = "x"\nuntil = 2020-01-01T00:00:00Z', "collections.a.keys[0].public: "),
        (
            good + keys + 'file = "old.key"\nuntil = 2020-01-01',
            "keys[0].until must be a time with its offset",
        ),
        (
            good + keys + 'file = "old.key"\nfrom = 1',
            "collections.a.keys[0] must set what is known here, got",
        ),
        (
            good + keys + 'file = "new.key"',
            "collections.a.keys: key must be that of the collection's shuffler",
        ),
        (
            good + key + "expires = 2027-01-11T00:00:00",
            "collections.a.expires must be a time with its offset",
        ),
        (
            good + key + 'expires = "soon"',
            "collections.a.expires must be a time with its offset from UTC, got a",
        ),
        (
            good + key + "not-before = 2027-01-11T00:00:00Z\nexpires = 2027-01-10T00:00:00Z",
            f"{file}: collections.a: expires must be after not_before",
        ),
        (good + key + "rate = 0", f"{file}: collections.a.rate must be positive and finite, got 0"),
        ("[collections.a]\n" + key, f"{file}: collections.a.file must be set"),
        ('[collections.a]\nfile = "gone.json"\n' + key, "file must be a file that can be read (no such file"),
        (
            '[collections.a]\nfile = "none.json"\n' + key,
            "file must be a file that can be read (it holds no JSON)",
        ),
        ('[collections.a]\nfile = "list.json"\n' + key, "(it holds no JSON object)"),
        (
            '[collections.a]\nfile = "p.json"\n' + key,
            f"{file}: collections.a.file: collection must be a document",
        ),
        (
            good + key + '[collections.b]\nfile = "a.json"\n' + key,
            f"{file}: collections.b must be another collection, but it is that of a; leave one out",
        ),
    ):
        with pytest.raises(ParameterError) as caught:
            read(folder, text)
        assert told in str(caught.value)
    for text, told in (
        (
            '[collections.a]\nfile = "p.json"\nbatch-size = 1',
            "collections.a.batch-size must be at least 2, got 1",
        ),
        (
            '[collections.a]\nfile = "p.json"\nkey = "x"',
            "collections.a must set what is known here, got 'key'",
        ),
        ('[collections.a]\nfile = "a.json"', f"{file}: collections.a.file must be a document of the format"),
        (f'[collections.a]\nfile = "p.json"\nname = "{"x" * 201}"', "name must be a text of at most 200"),
    ):
        with pytest.raises(ParameterError) as caught:
            read(folder, text, PLAIN)
        assert told in str(caught.value)
    with pytest.raises(ParameterError, match="folder must be set, but it is not; name a folder for all"):
        read(folder, good + key, head="")
    with pytest.raises(ParameterError, match="default must set what is known here, got 'c'; it may be a"):
        read(folder, good + key, head='folder = "s"\ndefault = "c"')


def test_a_secret_where_a_name_belongs_is_not_shown(folder: Path) -> None:
    line = (folder / "old.key").read_text().strip()
    for text in (
        f'[collections.a]\nfile = "a.json"\nkey = "{line}"\n',
        f'[collections.a]\nfile = "a.json"\n[[collections.a.keys]]\nfile = "{line}"\n',
        f'[collections.a]\nfile = "a.json"\n[[collections.a.keys]]\nenvironment = "{line}"\n',
    ):
        with pytest.raises(ParameterError, match=r"must be the name of a (file|variable)") as caught:
            read(folder, text)
        assert line[-20:] not in str(caught.value)


def test_one_question_is_served_once_whatever_its_batches(folder: Path) -> None:
    tables = [f'[collections.a{n}]\nfile = "p.json"\nname = "x"\nbatch-size = {n}\n' for n in (4, 5)]
    with pytest.raises(ParameterError, match="a5 must be another collection, but it is that of a4"):
        read(folder, "".join(tables), PLAIN)
    with pytest.raises(ParameterError, match="got 'counters'; choose such a name"):
        read(folder, '[collections.counters]\nfile = "p.json"\n', PLAIN)
