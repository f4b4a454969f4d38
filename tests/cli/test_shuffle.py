"""Keys, a collection, its service and what the analyst reads, by the command line alone."""

from __future__ import annotations

import itertools
import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sfumato.cli.commands import app
from sfumato.cli.input.protocols import value_reader
from sfumato.cli.shuffle import _grouped
from sfumato.errors import ParameterError
from sfumato.local.shuffle import Collection, SecretKey
from sfumato.server import Shuffler
from tests.cases import cases
from tests.forks import COMMAND, Fork, Forks

COLOURS = ("randomized-response", "--epsilon", "20", "--domain", "red,green,blue")


def run(*arguments: object, stdin: str | None = None) -> Any:
    return CliRunner().invoke(app, ["shuffle", *map(str, arguments)], input=stdin)


def answered(*arguments: object, stdin: str | None = None) -> str:
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both keys, and their public halves in ``*.pub``."""
    made = tmp_path_factory.mktemp("shuffle")
    for role in ("analyst", "shuffler"):
        (made / f"{role}.pub").write_text(answered("keygen", role, made / f"{role}.key"))
    return made


def collected(folder: Path, name: str, *protocol: object, batch_size: int = 30, colluders: int = 3) -> str:
    keys = [
        part
        for role in ("analyst", "shuffler")
        for part in (f"--{role}", (folder / f"{role}.pub").read_text())
    ]
    sizes = ["--batch-size", batch_size, "--colluders", colluders]
    return answered("collection", *protocol, *sizes, *keys, "--output", folder / name)


@contextmanager
def serving(forks: Forks, folder: Path, name: str) -> Iterator[tuple[str, Fork]]:
    options = ["--key", folder / "shuffler.key", "--folder", folder / f"{name}.store", "--port", 0]
    words = map(str, ["shuffle", "serve", folder / name, *options])
    with forks.start(COMMAND, "sfumato", *words) as process:
        first = process.line()
        assert " at http://127.0.0.1:" in first
        yield first.split(" at ")[1].strip(), process


def test_from_keys_to_an_estimate(command_forks: Forks, folder: Path) -> None:
    told = collected(folder, "colours.json", *COLOURS)
    made = Collection.from_specification(json.loads((folder / "colours.json").read_text()))
    assert f"collection {made.device.id.hex()}" in told
    assert f"each client sends {made.device.envelope_width} bytes" in told
    assert "if at least 27 of the 30 clients of each batch are honest" in told
    read = ("open", folder / "colours.json", "--key", folder / "analyst.key")
    with serving(command_forks, folder, "colours.json") as (url, process):
        send = ("submit", folder / "colours.json", "--url", url)
        nothing = run(*read, "--url", url)
        assert nothing.exit_code == 2
        assert "there must be a released batch" in nothing.stderr
        assert answered(*send, *["red"] * 20) == "20 taken, 0 refused\n"
        assert answered(*send, "-", stdin="blue\n" * 35) == "35 taken, 0 refused\n"
        for _ in range(3):  # the same client each time
            assert answered(*send, "green", "--secret", folder / "me") == "1 taken, 0 refused\n"
        assert (folder / "me").stat().st_mode & 0o777 == 0o600
        (folder / "me").chmod(0o604)
        loose = run(*send, "green", "--secret", folder / "me")
        assert "--secret must be a file that its owner alone can read" in loose.stderr
        shown = answered(*read, "--url", url)
        assert "1 batches, 30 records; refused: 0 by seal" in shown
        assert "reports fit the protocol: the shares sum to" in shown
        assert "3 forged reports in each batch, as many as are tolerated, move a share by -" in shown
        found = json.loads(answered(*read, "--url", url, "--json"))
        assert found["fit"]["p_value"] > 1e-9
        assert found["forged_bias"][0] < 0 < found["forged_bias"][1] < 1
        assert (found["format"], found["version"]) == ("sfumato.shuffled-estimate", 1)
        assert found["batches"] == 1
        assert found["records"] == 30
        assert found["exposed"] == []
        assert not found["simulated"]
        shares = {row["name"]: row["estimate"] for row in found["estimates"]}
        assert abs(shares["red"] - 20 / 30) < 1e-6  # one lies with probability 4e-9
        assert found["epsilon"] == made.privacy_loss.epsilon(1e-6)
        answered(*send, *["green"] * 4)
        strange = run(*send, "mauve")
        assert strange.exit_code == 2
        assert "values must be categories of the domain" in strange.stderr
        assert "mauve" not in strange.stderr
        collected(folder, "other.json", *COLOURS, "--name", "other")
        wrong = run("submit", folder / "other.json", "red", "--url", url)
        assert wrong.exit_code == 2
        assert "the service must be of this collection" in wrong.stderr
        batches = sorted((folder / "colours.json.store" / "batches").iterdir())
        assert len(batches) == 2
        assert "2 batches, 60 records" in answered(*read, *batches, "--page", folder / "page.html")
        assert "at least 27 of 30 devices are honest" in (folder / "page.html").read_text()
        answered(*read, *batches, "--page", folder / "page.html", "--language", "de")
        assert 'lang="de"' in (folder / "page.html").read_text()
        again = run(*read, batches[0], batches[0])
        assert again.exit_code == 2
        assert "opened once" in again.stderr
        process.send_signal(signal.SIGTERM)
        rest = process.ended().stdout
    assert rest == "2 batches released; refused envelopes: 0 by shape, 0 by seal\n"


def test_an_opening_is_stored_resumed_and_merged(folder: Path) -> None:
    collected(folder, "stored.json", *COLOURS)
    made = Collection.from_specification(json.loads((folder / "stored.json").read_text()))
    key = SecretKey.from_file(folder / "shuffler.key", "shuffler")
    with Shuffler(made.device, key, folder / "stored.store") as shuffler:
        shuffler.take([made.device.envelope("red", client.to_bytes(16, "big")) for client in range(90)])
        one, two, three = (shuffler.path(number) for number in (1, 2, 3))
    read = ("open", folder / "stored.json", "--key", folder / "analyst.key", "--json")

    def numbers(*more: object) -> tuple[int, int]:
        found = json.loads(answered(*read, *more))
        return found["batches"], found["records"]

    assert numbers("--state", folder / "a", one) == (1, 30)
    assert numbers("--state", folder / "a", one, two) == (2, 60)
    assert numbers("--state", folder / "a") == (2, 60)
    assert numbers("--state", folder / "b", three, "--processes", 1) == (1, 30)
    assert numbers("--merge", folder / "a", "--merge", folder / "b") == (3, 90)
    for bad, rule in (
        (("--merge", folder / "a", "--merge", folder / "a"), "other must have opened other batches only"),
        (("--merge", folder / "stored.json"), "state must be one that an opening wrote"),
        (("--state", folder / "none" / "a", one), "state must be in a folder that can be written"),
        (("--processes", 0, one), "processes must"),
    ):
        refused = run(*read, *bad)
        assert refused.exit_code == (1 if "folder" in rule else 2)
        assert rule in refused.stderr
    batch = two.read_bytes()
    one.write_bytes(batch[:56] + batch[56:][::-1])
    assert "a batch must" in run(*read, "--state", folder / "a", one).stderr
    assert numbers("--state", folder / "a") == (2, 60)


def test_a_mean(folder: Path) -> None:
    collected(folder, "ages.json", "piecewise-mean", "--epsilon", 2, "--parameter", "bounds=[18,90]")
    made = Collection.from_specification(json.loads((folder / "ages.json").read_text()))
    assert made.protocol.bounds == (18.0, 90.0)  # type: ignore[attr-defined]
    key = SecretKey.from_file(folder / "shuffler.key", "shuffler")
    with Shuffler(made.device, key, folder / "ages.store") as shuffler:
        shuffler.take([made.device.envelope(40, client.to_bytes(16, "big")) for client in range(30)])
        batch = shuffler.path(1)
    (row,) = json.loads(
        answered("open", folder / "ages.json", batch, "--key", folder / "analyst.key", "--json")
    )["estimates"]
    assert row["name"] == "mean"
    assert 18 <= row["lower"] <= row["upper"] <= 90
    shown = answered("open", folder / "ages.json", batch, "--key", folder / "analyst.key")
    SecretKey("analyst", b"m" * 32).to_file(folder / "later.key")
    later = ("--later-key", folder / "later.key", "--later-key")
    read = ("open", folder / "ages.json", batch, *later)
    assert answered(*read, folder / "analyst.key") == shown  # the first key may have been destroyed
    assert "be different" in run(*read, folder / "later.key").stderr
    (line,) = (line for line in shown.splitlines() if line.strip().startswith("mean"))
    least, most = map(float, re.findall(r"[\d.]+", line)[-2:])
    assert (least, most) == pytest.approx((row["lower"], row["upper"]), rel=1e-3)


def test_a_sum_of_several_messages_is_planned_for_the_honest_clients(folder: Path) -> None:
    told = collected(
        folder, "sum.json", "shuffled-sum", "--epsilon", 2, "--delta", 1e-3, "--parameter", "bounds=[0,10]"
    )
    assert "at delta 0.001" in told
    made = Collection.from_specification(json.loads((folder / "sum.json").read_text()))
    assert made.protocol.clients == 27  # type: ignore[attr-defined]
    assert made.device.messages > 1
    key = SecretKey.from_file(folder / "shuffler.key", "shuffler")
    with Shuffler(made.device, key, folder / "sum.store") as shuffler:
        shuffler.take([made.device.envelope(7, client.to_bytes(16, "big")) for client in range(30)])
        batch = shuffler.path(1)
    found = json.loads(
        answered("open", folder / "sum.json", batch, "--key", folder / "analyst.key", "--json")
    )
    assert found["records"] == 30 * made.device.messages
    (row,) = found["estimates"]
    assert row["name"] == "sum"
    # Noise and rounding stray by some 10; their law leaves 210 by 150 with probability below 1e-9.
    assert abs(row["estimate"] - 210) < 150
    assert row["lower"] <= row["estimate"] <= row["upper"]
    beyond = ("--delta", 1e-9)  # for which the messages are too few
    told = answered("open", folder / "sum.json", batch, "--key", folder / "analyst.key", "--json", *beyond)
    assert json.loads(told, parse_constant=pytest.fail)["epsilon"] is None
    assert "epsilon inf at" in answered(
        "open", folder / "sum.json", batch, "--key", folder / "analyst.key", *beyond
    )


@pytest.mark.parametrize("text", ["nan", "inf", "2.7", "two", ""])
def test_categories_of_a_range_are_whole_numbers(folder: Path, text: str) -> None:
    collected(folder, "range.json", "randomized-response", "--epsilon", 1, "--range", 5)
    known = Collection.from_specification(json.loads((folder / "range.json").read_text())).device
    read = value_reader(known.randomizer)
    assert read(" 3\n") == 3
    with pytest.raises(ParameterError, match="values must be whole numbers"):
        read(text)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("keygen", "clerk", "x.key"), "role must be one of analyst, shuffler"),
        (("keygen", "analyst", "analyst.key"), "must be a new one"),
        (("serve", "none.json", "--key", "shuffler.key", "--folder", "s"), "must be a file that can be read"),
        (("serve", "shuffler.pub", "--key", "shuffler.key", "--folder", "s"), "must be a collection's file"),
        (("serve", "deep.json", "--key", "shuffler.key", "--folder", "s"), "must be a collection's file"),
        (("serve", "c.json", "--folder", "s"), "--key must be given without --config"),
        (("serve", "--key", "shuffler.key", "--folder", "s"), "COLLECTION must be given without --config"),
        (("serve", "--config", "c.json", "--key", "shuffler.key"), "--key must be left out with --config"),
        (("serve", "--config", "c.json"), "c.json must be a file of TOML"),
        (("serve", "c.json", "--key", "analyst.key", "--folder", "s"), "the secret key of one shuffler"),
        (
            ("serve", "c.json", "--key", "shuffler.key", "--folder", "s", "--certificate", "c.pem"),
            "come with --certificate-key",
        ),
        (
            ("serve", "c.json", "--key", "shuffler.key", "--folder", "s", "--host", "192.0.2.1"),
            "host and port must be free on this machine",
        ),
        (("open", "c.json", "--key", "analyst.key"), "batches must be named, or --url"),
        (("open", "c.json", "c.json"), "--key must be given, or --later-key"),
        (
            ("open", "c.json", "c.json", "--key", "analyst.key"),
            "a batch must be one that a shuffler released",
        ),
        (("open", "domain.json", "c.json", "--key", "analyst.key"), "specification must state its domain"),
        (("open", "deep.json", "c.json", "--key", "analyst.key"), "must be a collection's file"),
        (("open", "c.json", "c.json", "--key", "shuffler.key"), "the secret key of one analyst"),
        (
            ("submit", "c.json", "red", "blue", "--url", "http://x", "--secret", "me"),
            "be given with one value",
        ),
        (("submit", "c.json", "-", "--url", "http://x", "--secret", "me"), "be given with one value"),
        (("submit", "c.json", "red", "--url", "x"), "url must be http://"),
    ],
)
def test_mistakes_are_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(folder)
    if not (folder / "c.json").exists():
        collected(folder, "c.json", *COLOURS)
        (folder / "deep.json").write_text("[" * 100_000)
        bad = json.loads((folder / "c.json").read_text())
        bad["randomizer"]["domain"] = ["red", "green"]
        (folder / "domain.json").write_text(json.dumps(bad))
    result = run(*arguments)
    assert result.exit_code in {1, 2}, result.output
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("protocol", "told"),
    [
        (("Domain", "--epsilon", "1"), "protocol must be the name of a local"),
        (("Oracle", "--epsilon", "1", "--range", "3"), "protocol must be the name of a local"),
        (("randomized-response", "--epsilon", "1"), "but domain is missing"),
        (
            ("randomized-response", "--epsilon", "1", "--range", "3", "--domain", "a,b"),
            "come without --range",
        ),
        (("randomized-response", "--epsilon", "1", "--range", "3", "--delta", "2"), "delta must be"),
        (("piecewise-mean", "--epsilon", "1", "--range", "3"), "but domain is not one of them"),
        (("piecewise-mean", "--epsilon", "1", "--parameter", "bounds"), "must be NAME=JSON"),
        (("randomized-response", "--epsilon", "1", "--range", "1"), "values must"),
    ],
)
def test_protocols_that_are_not(folder: Path, protocol: tuple[str, ...], told: str) -> None:
    keys = [
        part
        for role in ("analyst", "shuffler")
        for part in (f"--{role}", (folder / f"{role}.pub").read_text())
    ]
    result = run("collection", *protocol, "--batch-size", 10, *keys, "--output", folder / "bad.json")
    assert result.exit_code == 2, result.output
    assert told in result.stderr
    assert not (folder / "bad.json").exists()


@cases(("width", "most"), [(80, 256), (4096, 256), (5000, 209), (100_000, 10), (1 << 20, 1), (1 << 21, 1)])
def test_requests_have_as_many_envelopes_as_a_mebibyte_holds(width: int, most: int) -> None:
    envelopes = [bytes([i % 256]) for i in range(2 * most + 1)]
    groups = list(_grouped(iter(envelopes), width))
    assert [len(group) for group in groups] == [most, most, 1]
    assert list(itertools.chain(*groups)) == envelopes
