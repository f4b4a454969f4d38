"""``sfumato init``: what it writes loads as it stands, and each line in it is a real setting."""

from __future__ import annotations

import inspect
import json
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import sfumato
from sfumato.cli.commands import app
from sfumato.cli.data import ACS
from sfumato.cli.opening import open_session
from sfumato.cli.process.settings import SETTINGS
from sfumato.cli.process.shared_options import options_of
from sfumato.server.console.access.oidc_settings import OidcSettings
from sfumato.server.console.settings import OIDC_BACK, ConsoleSettings, read_settings
from sfumato.server.console.settings import SETTINGS as CONSOLE
from sfumato.server.hosting.collection_settings import PLAIN, SHUFFLED, CollectionKind
from sfumato.server.hosting.configuration import Configuration
from sfumato.server.hosting.service_settings import SETTINGS as SERVICE

QUERY = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS n FROM data"


def ran(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def done(*words: object) -> str:
    result = ran(*words)
    assert result.exit_code == 0, result.output
    return str(result.stdout)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def switched(text: str, *names: str) -> str:
    """Return a file with the # before some settings taken away; with none named, before all."""
    lines = []
    for line in text.splitlines():
        name = line.removeprefix("#").partition(" = ")[0]
        off = line.startswith("#") and not line.startswith("# ")
        lines.append(line[1:] if off and (name in names or not names) else line)
    return "\n".join(lines)


def defaults(text: str) -> dict[str, Any]:
    """Return what the comments say is the default of each setting."""
    found = {}
    for above, line in pairwise(text.splitlines()):
        name, equals, _ = line.removeprefix("#").partition(" = ")
        said = above.partition(" Default: ")[2]
        if equals and said and said not in {"at once", "never"}:
            found[name] = tomllib.loads(f"x = {said}")["x"]
    return found


def test_every_option_of_a_session_is_there_and_real(here: Path) -> None:
    done("init")
    text = Path("sfumato.toml").read_text()
    assert tomllib.loads(text) == {}
    assert tuple(tomllib.loads(switched(text))) == SETTINGS
    own = {name: option.default for name, option in options_of(open_session).items() if name in SETTINGS}
    assert defaults(text) == {name: default for name, default in own.items() if default not in (None, "")}


def test_a_session_opens_by_the_file(here: Path) -> None:
    done("init")
    text = Path("sfumato.toml").read_text()
    assert ran("explain", ACS, QUERY).exit_code == 2
    Path("sfumato.toml").write_text(switched(text, "privacy-unit", "epsilon", "delta", "ledger"))
    assert "person_id" in done("explain", ACS, QUERY)
    assert Path("acs.ledger").exists()
    for name in SETTINGS:  # each is one that the commands take
        Path("sfumato.toml").write_text(switched(text, name))
        message = ran("explain", ACS, QUERY).stderr
        assert "sfumato.toml must set" not in message, (name, message)
        assert "Usage" not in message, (name, message)


def configuration(kind: CollectionKind) -> Configuration:
    return Configuration(
        file=Path("collector.toml"), kind=kind, options={}, environment={}, default_port=8420
    )


def checked(kind: CollectionKind) -> None:
    """A file that was written loads, says the real defaults, and loads with all lines switched on."""
    text = Path("collector.toml").read_text()
    _, collections = configuration(kind).read()
    assert list(collections) == ["week-7"]
    stated = defaults(text)
    port = stated.pop("port")
    assert port == (8420 if kind is SHUFFLED else 8421)
    own = {"batch-size": 1000, "name": "week-7"} if kind is PLAIN else {}
    assert stated == own | {name: each for name, (_, each) in SERVICE.items() if each not in (None, ())}
    Path("collector.toml").write_text(switched(text))
    found = configuration(kind).read()[0].values
    assert {name: found[name] for name in stated if name not in own} == {
        name: value for name, value in stated.items() if name not in own
    }
    assert found["default"] == "week-7"
    whole = tomllib.loads(switched(text))
    assert tuple(name for name in whole if name != "collections") == tuple(SERVICE)
    assert set(whole["collections"]["week-7"]) == set(kind.known) - {"keys", "analyst-keys"}
    assert all(f"[[collections.NAME.{name}]]" in text for name in set(kind.known) & {"keys", "analyst-keys"})


def test_of_a_service_of_plain_reports(here: Path) -> None:
    done("local", "protocol", "randomized-response", "--epsilon", 2, "--range", 3, "--output", "Week 7.json")
    done("init", "local", "Week 7.json")
    checked(PLAIN)


def test_of_a_shuffler(here: Path) -> None:
    keys = []
    for role in ("analyst", "shuffler"):
        keys += [f"--{role}", done("shuffle", "keygen", role, f"{role}.key").strip()]
    size = ("--batch-size", 100, "--epsilon", 1, "--range", 3, "--output", "week_7.json")
    done("shuffle", "collection", "randomized-response", *keys, *size)
    done("init", "shuffle", "week_7.json", "--key", "shuffler.key")
    checked(SHUFFLED)


def test_of_the_console(here: Path) -> None:
    done("init", "console")
    text = Path("console.toml").read_text()
    assert read_settings(Path("console.toml")) == ConsoleSettings(
        ledger="people.ledger", folder=Path("console")
    )
    for name, secret in (("client.secret", "quiet"), ("proxy.secret", "0123456789abcdef" * 2)):
        (here / name).touch(0o600)
        (here / name).write_text(secret)
    (here / "domain.toml").write_text("[age]\nvalues = [0, 1]\n")
    Path("console.toml").write_text(switched(text))
    whole = tomllib.loads(switched(text))
    oidc = whole["sign-in"].pop("oidc")
    tables = {"": {name: each for name, each in whole.items() if not isinstance(each, dict)}}
    tables |= {name: each for name, each in whole.items() if isinstance(each, dict)} | {"sign-in.oidc": oidc}
    assert {name: tuple(each) for name, each in tables.items()} == dict(CONSOLE)
    found = read_settings(Path("console.toml"))
    own = ConsoleSettings(ledger="", folder=Path())
    assert (found.host, found.port, found.title, found.hours) == (own.host, own.port, own.title, own.hours)
    assert (found.grid, found.jobs, found.proxies) == (own.grid, own.jobs, own.proxies)
    assert found.oidc is not None
    stated = OidcSettings(
        issuer="https://id.example", client_id="c", redirect_uri="https://c.example" + OIDC_BACK
    )
    assert (found.oidc.claim, found.oidc.ask_for) == (stated.claim, stated.ask_for)
    names = set(inspect.signature(sfumato.connect).parameters)
    assert {name.replace("-", "_") for name in whole["dataset"]} - {"domains"} <= names
    said = defaults(text)
    assert (said["port"], said["step"], said["total"]) == (own.port, own.grid.step, own.jobs.total)


def test_nothing_is_overwritten_and_refusals_say_why(here: Path) -> None:
    found = json.loads(done("init", "--json"))
    assert (found["format"], found["output"]) == ("sfumato.configuration-written", "sfumato.toml")
    for words, said in (
        (("init",), "output must be a new file, got 'sfumato.toml'"),
        (("init", "local"), "the files must be named"),
        (("init", "session", "x"), "the files must be left out"),
        (("init", "console", "x"), "the files must be left out"),
        (("init", "shuffle", "x"), "--key must be given for shuffle"),
        (("init", "local", "x", "--key", "k"), "--key must be given for shuffle"),
        (("init", "local", "x.json", "y/x.json"), "the files must have names of their own"),
        (("init", "local", "x\udcff.json"), "the files must have names that are text"),
    ):
        result = ran(*words)
        assert (result.exit_code, result.stderr.startswith(f"sfumato: {said}")) == (2, True), result.stderr
    assert not (here / "collector.toml").exists()
