"""Texts of an unknown domain by the command line alone: a collection, its service, and what is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sfumato.local.device import SparseCollection
from sfumato.local.shuffle import SecretKey
from sfumato.server import Shuffler
from tests.cli.test_shuffle import answered, run, serving
from tests.forks import Forks


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both keys and a collection of forty clients."""
    made = tmp_path_factory.mktemp("sparse")
    keys = []
    for role in ("analyst", "shuffler"):
        keys += [f"--{role}", answered("keygen", role, made / f"{role}.key").strip()]
    options = [
        "--epsilon",
        8,
        "--batch-size",
        40,
        "--key-bytes",
        20,
        "--encryption-key",
        made / "devices.key",
    ]
    told = answered("sparse", "collection", *options, *keys, "--output", made / "urls.json")
    asked = SparseCollection.from_specification(json.loads((made / "urls.json").read_text()))
    assert f"collection {asked.id.hex()}" in told
    assert f"each client sends {asked.envelope_width} bytes" in told
    assert "for each client; texts are shown from a noisy count of 4 of 40 clients" in told
    assert (made / "devices.key").stat().st_mode & 0o777 == 0o600
    # Again, with the key that is there: the same collection.
    assert answered("sparse", "collection", *options, *keys, "--output", made / "again.json") == told
    return made


def test_from_a_collection_to_counts(command_forks: Forks, folder: Path) -> None:
    asked = SparseCollection.from_specification(json.loads((folder / "urls.json").read_text()))
    secret = (folder / "devices.key").read_bytes()
    key = SecretKey.from_file(folder / "shuffler.key", "shuffler")
    with Shuffler(asked, key, folder / "urls.json.store") as shuffler:
        people = [["red"]] * 38 + [["only one"]]
        envelopes = [asked.envelope(one, bytes([n]) * 16, secret) for n, one in enumerate(people)]
        assert all(shuffler.take(envelopes))
    key_file = ("--encryption-key", folder / "devices.key")
    with serving(command_forks, folder, "urls.json") as (url, _):
        submit = ("sparse", "submit", folder / "urls.json", "--url", url, *key_file)
        long = run(*submit, stdin="red\n" + "x" * 21)
        assert long.exit_code == 2
        assert "keys must be texts of at most 20 bytes" in long.stderr
        argument = run(*submit, "a secret")
        assert argument.exit_code == 2
        assert "texts must be in a file or on standard input, but they are arguments" in argument.stderr
        assert "a secret" not in argument.output
        (folder / "mine.txt").write_bytes("red\r\nblå\n".encode())
        assert answered(*submit, "--texts", folder / "mine.txt") == "1 taken, 0 refused\n"
        for none_or_one in ("", "red"):
            assert answered(*submit, "--texts", "-", stdin=none_or_one) == "1 taken, 0 refused\n"
        read = ("sparse", "open", folder / "urls.json", *key_file)
        found = json.loads(answered(*read, "--url", url, "--key", folder / "analyst.key", "--json"))
    assert (found["format"], found["version"]) == ("sfumato.sparse-counts", 1)
    assert (found["epsilon"], found["delta"], found["threshold"]) == (8.0, 1e-6, 4)
    (batch,) = found["batches"]
    assert list(batch["counts"]) == ["red"]
    assert abs(batch["counts"]["red"] - 39) <= 20  # discrete Laplace of scale 1/4: beyond it below 1e-30
    shown = answered(*read, folder / "urls.json.store" / "batches" / "batch-000001.mixed")
    assert "batch 1, 1 texts" in shown
    assert f"{batch['counts']['red']}  'red'" in shown
    assert "only one" not in shown


def test_bad_input_is_refused(folder: Path) -> None:
    key = ("--encryption-key", folder / "devices.key")
    (folder / "short.key").write_bytes(b"short")
    (folder / "other.key").write_bytes(bytes(32))
    (folder / "open.key").write_bytes(bytes(32))
    for name, mode in (("short.key", 0o600), ("other.key", 0o400), ("open.key", 0o640)):
        (folder / name).chmod(mode)
    (folder / "latin.txt").write_bytes(b"\xff")
    (folder / "junk").write_bytes(b"junk")
    urls = folder / "urls.json"
    for command, rule in (
        (("open", urls, *key), "releases must be named"),
        (("open", urls, folder / "junk", *key), "a release must"),
        (("open", folder / "devices.key", folder / "junk", *key), "must be a collection's file"),
        (("open", urls, folder / "junk", "--encryption-key", folder / "short.key"), "be a file of 32 bytes"),
        (
            ("open", urls, folder / "junk", "--encryption-key", folder / "open.key"),
            "--encryption-key must be a file that its owner alone",
        ),
        (("open", urls, folder / "junk", "--encryption-key", folder / "none.key"), "that can be read"),
        (("submit", urls, "--url", "here", *key), "url must"),
        (("submit", urls, "--url", "here", "--texts", folder / "latin.txt", *key), "--texts must be text in"),
        (("submit", urls, "--url", "here", "--texts", folder / "none.txt", *key), "a file that can be read"),
        (
            ("submit", urls, "--url", "http://x", "--encryption-key", folder / "other.key"),
            "encryption_key must",
        ),
    ):
        refused = run("sparse", *command)
        assert refused.exit_code == (1 if "can be read" in rule else 2), command
        assert rule in refused.stderr
