"""``sfumato local serve``, a real process, from devices to an estimate by the command line alone."""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sfumato.cli.commands import app
from sfumato.local import device
from sfumato.server import Visitor
from tests.forks import COMMAND, Fork, Forks


def run(*arguments: object, **environment: str) -> Any:
    return CliRunner(env=environment).invoke(app, ["local", *map(str, arguments)])


@pytest.fixture(scope="module")
def protocol(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("local") / "p.json"
    done = run("protocol", "randomized-response", "--epsilon", 20, "--domain", "red,green", "--output", path)
    assert done.exit_code == 0, done.output
    return path


@contextmanager
def serving(forks: Forks, protocol: Path, *options: object, **environment: str) -> Iterator[tuple[str, Fork]]:
    """The process and its URL; ended by its own id."""
    words, space = ("local", "serve", str(protocol), *map(str, options)), {**os.environ, **environment}
    with forks.start(COMMAND, "sfumato", *words, environment=space) as process:
        first = process.line()
        assert " at http://127.0.0.1:" in first
        yield first.split(" at ")[1].strip(), process


@pytest.mark.parametrize("killed", [False, True])
def test_from_devices_to_shares(command_forks: Forks, protocol: Path, tmp_path: Path, killed: bool) -> None:
    known = json.loads(protocol.read_text())["device"]
    randomizer = device.Randomizer.from_specification(known)
    asked = device.PublicQuestion(randomizer=randomizer, name="week 7")
    colours = ["red"] * 8 + ["green"] * 5
    sent = [asked.submission(colour, bytes([at]) * 16) for at, colour in enumerate(colours)]
    options = ("--folder", tmp_path / "store", "--name", "week 7", "--batch-size", 4)
    # The option is before the environment: this port is taken by nobody, and not asked for.
    with serving(
        command_forks, protocol, *options, "--port", 0, "--metrics-port", 0, SFUMATO_SERVE_PORT="1"
    ) as (
        url,
        process,
    ):
        numbers = process.line().split(" at ")[1].strip()
        with Visitor(url) as visitor:
            assert device.PublicQuestion.from_specification(visitor.collection()) == asked
            assert visitor.status()["collection"] == asked.id.hex()
            assert visitor.send(sent[:6]) == {"taken": 6, "refused": 0}
            assert visitor.send([*sent[4:7], bytes(len(sent[0]))]) == {"taken": 3, "refused": 1}
            assert visitor.status()["batches"] == 1
            if not killed:
                assert visitor.send(sent) == {"taken": 13, "refused": 0}
        # Batches are files, and not handed out.
        for path, status in (("/v1/batches/1", 404), ("/v1/keys", 404), ("/healthz", 200)):
            assert ask(url + path)[0] == status
        page = ask(numbers)[1]
        assert 'sfumato_envelopes_refused_total{reason="tag"} 1\n' in page
        assert "seal" not in page
        process.send_signal(signal.SIGKILL if killed else signal.SIGTERM)
        done = process.ended()
        if not killed:
            last = "3 batches released; refused envelopes: 0 by shape, 1 by tag, 0 by encoding\n"
            assert (done.stdout, done.stderr) == (last, "")
    if killed:
        with (
            serving(command_forks, protocol, *options, SFUMATO_SERVE_PORT="0") as (url, _),
            Visitor(url) as visitor,
        ):
            assert visitor.send(sent) == {"taken": 13, "refused": 0}
    batches = sorted((tmp_path / "store" / "batches").iterdir())
    assert [path.name for path in batches] == [f"batch-{number:06d}.parquet" for number in (1, 2, 3)]
    counted = run("aggregate", protocol, *batches, "--output", tmp_path / "counts")
    assert "12 reports counted; refused: 0 by width" in counted.stdout
    shown = json.loads(run("estimate", protocol, tmp_path / "counts", "--json").stdout)
    shares = {row["name"]: row["estimate"] for row in shown["estimates"]}
    assert abs(shares["red"] - 8 / 12) < 1e-6  # the last green one waits; one lies with probability 5e-8


def ask(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, ""


def test_mistakes_are_one_line(protocol: Path, tmp_path: Path) -> None:
    serve = ("serve", protocol)
    folder = ("--folder", tmp_path / "s")
    for arguments, environment, told in (
        (serve, {}, "--folder must be given"),
        ((*serve, *folder, "--batch-size", 1), {}, "--batch-size must be an integer of at least 2, got 1"),
        ((*serve, *folder, "--port", 70_000), {}, "--port must be at most 65535, got 70000"),
        ((*serve, *folder, "--timeout", 0), {}, "--timeout must be positive and finite, got 0.0"),
        ((*serve, *folder, "--host", "192.0.2.1"), {}, "host and port must be free"),
        ((*serve, *folder), {"SFUMATO_SERVE_PORT": "x"}, "SFUMATO_SERVE_PORT must be an integer of at le"),
        ((*serve, *folder), {"SFUMATO_SERVE_PROT": "1"}, "did you mean 'SFUMATO_SERVE_PORT'?"),
        ((*serve, *folder), {"SFUMATO_SERVE_DEFAULT": "a"}, "SFUMATO_SERVE_DEFAULT must come with --config"),
        ((*serve, *folder), {"SFUMATO_SERVE_CERTIFICATE": "a"}, "SFUMATO_SERVE_CERTIFICATE must come with"),
        (("serve", *folder), {}, "the protocol's file must be given without --config"),
        (
            ("serve", "--config", protocol, "--name", "x"),
            {},
            "--name must be left out with --config, got 'x'",
        ),
        (("serve", protocol, "--config", protocol), {}, "the protocol's file must be left out with --config"),
        (("serve", "--config", tmp_path / "none"), {}, "none must be a file that can be read"),
        (("serve", "--config", protocol), {}, "p.json must be a file of TOML"),
        (("serve", tmp_path / "none"), {"SFUMATO_SERVE_FOLDER": "x"}, "must be a file that can be read"),
    ):
        result = run(*arguments, **environment)
        assert result.exit_code in {1, 2}, result.output
        assert told in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "s").exists() or not list((tmp_path / "s").glob("batches"))
