"""The console's settings in TOML: each read and checked, and each error names its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.ledger import Renewal
from sfumato.server.console.access.oidc_settings import OidcSettings
from sfumato.server.console.asking.job_store import JobLimits
from sfumato.server.console.asking.time_grid import TimeGrid
from sfumato.server.console.settings import ConsoleSettings, read_settings
from sfumato.synthetic import Ordered, TableDomain
from tests.cases import cases

WHOLE = """
ledger = "people.ledger"
folder = "kept"
title = "A town"

[dataset]
source = {people = "people.parquet", visits = "postgresql://reader@db/visits"}
privacy-unit = ["person", "device"]
epsilon = 2.0
delta = 1e-7
renewal = {every = "month", column = "day"}
period = "2026-01"
policy = "policy.json"
domains = {people = "people.json"}

[listening]
host = "0.0.0.0"
port = 0
origins = ["https://console.example"]
certificate = "cert.pem"
certificate-key = "key.pem"
proxies = ["10.0.0.1"]

[answers]
step = 10.0
first = 2
doublings = 3
per-analyst = 5
total = 50

[sign-in]
hours = 1
proxy-header = "x-user"
proxy-secret-file = "proxy"
[sign-in.oidc]
issuer = "https://id.example"
client-id = "console"
client-secret-file = "secret"
members = {"1f3a" = "ada"}
"""


OIDC = '[sign-in.oidc]\nclient-id = "c"\nredirect-uri = "https://c.example/sign-in/oidc/back"\n'


def _file(folder: Path, text: str) -> Path:
    path = folder / "console.toml"
    path.write_text(text)
    return path


def test_everything_is_read(tmp_path: Path) -> None:
    domain = TableDomain(age=Ordered.integers(0, 99))
    (tmp_path / "people.json").write_text(domain.to_json())
    for name, text in (("secret", "quiet\n"), ("proxy", f"{'0f' * 32}\n")):
        (tmp_path / name).touch(0o600)
        (tmp_path / name).write_text(text)
    found = read_settings(_file(tmp_path, WHOLE))
    assert found == ConsoleSettings(
        ledger=str(tmp_path / "people.ledger"),
        folder=tmp_path / "kept",
        title="A town",
        dataset={
            "source": {"people": str(tmp_path / "people.parquet"), "visits": "postgresql://reader@db/visits"},
            "privacy_unit": ("person", "device"),
            "epsilon": 2.0,
            "delta": 1e-7,
            "renewal": Renewal(every="month", column="day"),
            "period": "2026-01",
            "policy": str(tmp_path / "policy.json"),
        },
        domains={"people": domain},
        host="0.0.0.0",
        port=0,
        origins=("https://console.example",),
        certificate=(tmp_path / "cert.pem", tmp_path / "key.pem"),
        proxies=("10.0.0.1",),
        proxy_header="x-user",
        proxy_secret=b"0f" * 32,
        oidc=OidcSettings(
            issuer="https://id.example",
            client_id="console",
            client_secret="quiet",
            redirect_uri="https://console.example/sign-in/oidc/back",
            members={"1f3a": "ada"},
        ),
        hours=1.0,
        grid=TimeGrid(step=10.0, first=2, doublings=3),
        jobs=JobLimits(per_analyst=5, total=50),
    )


def test_little_is_enough(tmp_path: Path) -> None:
    found = read_settings(_file(tmp_path, 'ledger = "postgresql://budgets@db/privacy"'), port=8000)
    assert (found.ledger, found.port, found.dataset) == ("postgresql://budgets@db/privacy", 8000, {})
    assert found.folder == tmp_path / "console"
    assert found.tokens == tmp_path / "console" / "tokens"
    assert not found.behind_proxy


def test_a_proxy_is_known_by_its_header_and_by_its_tls() -> None:
    def behind(**stated: object) -> bool:
        settings: Any = {"ledger": "l", "folder": Path(), **stated}
        return ConsoleSettings(**settings).behind_proxy

    names = ("https://console.example",)
    assert behind(origins=names)
    assert behind(proxy_header="x-user")
    assert not behind(origins=("http://127.0.0.1:8460",))
    assert not behind(origins=names, certificate=(Path("cert.pem"), Path("key.pem")))
    with pytest.raises(ParameterError, match="proxy_header must be stated with proxy_secret"):
        behind(proxy_secret=b"0f" * 32)


@cases(
    ("text", "error"),
    [
        ("", "ledger must be set"),
        ("ledger = 1", "ledger must be a text"),
        ('ledger = "l"\nledgers = 1', "must set what is known here, got 'ledgers'; did you mean 'ledger'?"),
        ('ledger = "l"\n[dataset]', "dataset.source must be set"),
        ('ledger = "l"\n[dataset]\nsource = 1', "dataset.source must be a text"),
        (
            'ledger = "l"\n[dataset]\nsource = "s"\nanalyst = "ada"',
            "must set what is known here, got 'analyst'",
        ),
        ('ledger = "l"\n[dataset]\nsource = "s"\nrenewal = {every = "month"}', "dataset.renewal.column must"),
        ('ledger = "l"\n[dataset]\nsource = "s"\nrenewal = {every = "x", column = "c"}', "must be"),
        ('ledger = "l"\n[dataset]\nsource = "s"\ndomains = {data = "d.csv"}', "be a file of TOML or JSON"),
        ('ledger = "l"\n[dataset]\nsource = "s"\ndomains = {data = "d.json"}', "be a file that can be read"),
        ('ledger = "l"\n[listening]\nport = 65536', "listening.port must be at most"),
        ('ledger = "l"\n[listening]\norigins = "a"', "origins must be"),
        (
            'ledger = "l"\n[listening]\nhost = "0.0.0.0"',
            "origins must be stated, but there are none for 0.0.0.0",
        ),
        ('ledger = "l"\n[listening]\ncertificate = "a"', "listening must set both or none"),
        ('ledger = "l"\n[answers]\nstep = 1e6', "step must be from a millisecond to a day"),
        ('ledger = "l"\n[answers]\nstep = 0', "answers.step must be positive"),
        ('ledger = "l"\n[answers]\ntotal = 0', "answers.total must be an integer of at least 1"),
        ('ledger = "l"\n[sign-in]\noidc = 1', "sign-in.oidc must be a table"),
        (
            'ledger = "l"\n[sign-in.oidc]\nissuer = "https://i.example"',
            "redirect-uri must be an address of this",
        ),
        (
            f'ledger = "l"\n{OIDC}client-secret-file = "none"\nissuer = "https://i.example"',
            "client-secret-file must be a file that can be read",
        ),
        (f'ledger = "l"\n{OIDC}issuer = "http://i.example"', "issuer must be an https:// URL"),
        ("ledger = ", "must be a file of TOML"),
    ],
)
def test_each_error_names_its_place(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(ParameterError) as caught:
        read_settings(_file(tmp_path, text))
    assert error in str(caught.value)
    assert "console.toml" in str(caught.value)


def test_a_secret_that_others_can_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").touch(0o640)
    text = f'ledger = "l"\n{OIDC}client-secret-file = "secret"\nissuer = "https://i.example"'
    with pytest.raises(ParameterError, match="client-secret-file must be a file that its owner alone can"):
        read_settings(_file(tmp_path, text))
