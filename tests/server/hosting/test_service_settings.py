"""Settings come from the first place that states them, and each wrong one is named with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.server.hosting.service_settings import SETTINGS, ServiceSettings, service_settings
from sfumato.server.hosting.toml_table import read_toml


def settled(
    folder: Path, text: str, options: dict[str, Any] | None = None, **environment: str
) -> ServiceSettings:
    (folder / "collector.toml").write_text(text)
    table = read_toml(folder / "collector.toml", tuple(SETTINGS))
    return service_settings(options or {}, environment, table, default_port=8420)


def test_an_option_is_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    text = 'port = 1\nhost = "192.0.2.1"\nrate = 7\nmetrics-port = 9\nproxy = true\nfolder = "in-file"\n'
    found = settled(
        tmp_path,
        text,
        {"port": 3, "json-log": None},
        SFUMATO_SERVE_PORT="2",
        SFUMATO_SERVE_RATE="8.5",
        SFUMATO_SERVE_HOST="",
        SFUMATO_SERVE_JSON_LOG="true",
        PATH="/bin",
    )
    where = found.listening(print)
    assert (where.port, where.limits.rate, where.host) == (3, 8.5, "192.0.2.1")
    assert where.metrics == ("127.0.0.1", 9)
    assert where.limits.per_address is None
    assert (where.limits.total_rate, where.limits.sender_rate) == (float("inf"), None)
    assert (where.limits.connections, where.structured_log, where.certificate) == (16_384, True, None)
    # A relative path in the file is from the file's folder; elsewhere from where the command runs.
    assert found.folder == tmp_path / "in-file"
    assert settled(tmp_path, text, {"folder": "here"}).folder == Path("here")
    assert settled(tmp_path, "", SFUMATO_SERVE_FOLDER="123").folder == Path("123")
    assert settled(tmp_path, "").listening(print).port == 8420
    pair = settled(tmp_path, 'certificate = "a.pem"', SFUMATO_SERVE_CERTIFICATE_KEY="/b.pem")
    assert pair.listening(print).certificate == (tmp_path / "a.pem", Path("/b.pem"))


def test_limits_of_all_collections_are_in_the_file_or_the_environment(tmp_path: Path) -> None:
    text = "total-rate = 7\nrate-per-address = 2.5\ntotal-waiting = 1000\ntotal-stored = 5\n"
    limits = settled(tmp_path, text, SFUMATO_SERVE_TOTAL_STORED="900_000").listening(print).limits
    assert (limits.total_rate, limits.sender_rate) == (7.0, 2.5)
    assert (limits.total_waiting, limits.total_stored) == (1000, 900_000)
    rule = "rate-per-address must be left out with proxy, but all clients have the proxy's address; limit"
    with pytest.raises(ParameterError, match=rule):
        settled(tmp_path, "rate-per-address = 2", SFUMATO_SERVE_PROXY="true")


def test_origins_are_a_list_wherever_they_are_stated(tmp_path: Path) -> None:
    pages = 'origins = ["https://a.example:443", "http://b.example"]'
    assert settled(tmp_path, "").listening(print).origins == ()
    assert settled(tmp_path, pages).listening(print).origins == ("https://a.example", "http://b.example")
    found = settled(tmp_path, pages, SFUMATO_SERVE_ORIGINS='["https://c.example"]')
    assert found.listening(print).origins == ("https://c.example",)
    found = settled(tmp_path, pages, {"origins": ["https://d.example"]})
    assert found.listening(print).origins == ("https://d.example",)
    for value in ('"https://a.example"', '["*"]', "[1]"):
        with pytest.raises(ParameterError, match="origins: origins must be"):
            settled(tmp_path, f"origins = {value}")


def test_each_mistake_names_its_place_the_rule_the_value_and_a_remedy(tmp_path: Path) -> None:
    file = str(tmp_path / "collector.toml")
    for text, environment, told in (
        ("prot = 1", {}, f"{file} must set what is known here, got 'prot'; did you mean 'port'?"),
        ("zzz = 1", {}, "got 'zzz'; it may be folder, host"),
        ('port = "8420"', {}, f"{file}: port must be an integer of at least 0, got '8420'; write 0"),
        ("port = 70000", {}, f"{file}: port must be at most 65535, got 70000; write 0 for any"),
        ("port = true", {}, "port must be an integer of at least 0, got True"),
        ("rate = nan", {}, f"{file}: rate must be positive and finite, got nan; write a number"),
        ("rate = -inf", {}, f"{file}: rate must be positive and finite, got -inf"),
        ("timeout = inf", {}, f"{file}: timeout must be positive and finite, got inf"),
        ("total-stored = 0", {}, "total-stored must be an integer of at least 1, got 0"),
        ("total-rate = 0", {}, f"{file}: total-rate must be positive and finite, got 0"),
        ("rate-per-address = inf", {}, "rate-per-address must be positive and finite, got inf"),
        ("connections = 0", {}, "connections must be an integer of at least 1, got 0"),
        ("proxy = 1", {}, f"{file}: proxy must be true or false, got 1"),
        ("host = 1", {}, f"{file}: host must be a text, got a value of type int; write it in quotes"),
        ('host = ""', {}, f"{file}: host must be a text that is not empty, got ''"),
        ('certificate = "a"', {}, f"{file}: certificate must come with certificate-key"),
        ('certificate-key = "a"', {}, f"{file}: certificate-key must come with certificate"),
        ("port = ", {}, f"{file} must be a file of TOML, but Invalid value"),
        (
            "",
            {"SFUMATO_SERVE_PORT": "many"},
            "SFUMATO_SERVE_PORT must be an integer of at least 0, got 'many'",
        ),
        ("", {"SFUMATO_SERVE_PROXY": "yes"}, "SFUMATO_SERVE_PROXY must be true or false, got 'yes'"),
        ("", {"SFUMATO_SERVE_HOTS": "x"}, "did you mean 'SFUMATO_SERVE_HOST'?"),
        ("", {"SFUMATO_SERVE_PORT": "1\nhost = 2"}, "SFUMATO_SERVE_PORT must be an integer of at least 0"),
    ):
        with pytest.raises(ParameterError) as caught:
            settled(tmp_path, text, {}, **environment)
        assert told in str(caught.value)
    with pytest.raises(ParameterError, match="must be a file that can be read, but it is not: no such file"):
        read_toml(tmp_path / "none.toml", ())
    (tmp_path / "collector.toml").write_bytes(b"\xff")
    with pytest.raises(ParameterError, match="must be a file of TOML"):
        read_toml(tmp_path / "collector.toml", ())
