"""Formats by a file's ending, and JSON that carries cost, rest and receipts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato.cli.commands import app

COUNT = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS n FROM data"
ASK = ("sql", "people.parquet", "--privacy-unit", "id", "--epsilon", "2", "--ledger", "l")


def run(*words: str) -> Any:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pq.write_table(pa.table({"id": range(100)}), tmp_path / "people.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_ending_is_the_format(folder: Path) -> None:
    (folder / "query.sql").write_text(COUNT)
    for name in ("a.parquet", "a.csv", "a.JSON", "a.txt"):
        run(*ASK, "-f", "query.sql", "--output", name)
    rows = pq.read_table("a.parquet").to_pylist()
    assert pa_csv.read_csv("a.csv").to_pylist() == rows
    assert json.loads(Path("a.JSON").read_text())["rows"] == rows
    assert "95 % interval" in Path("a.txt").read_text()
    run("ledger", "release", "l", "1", "--output", "again.csv")
    assert Path("again.csv").read_bytes() == Path("a.csv").read_bytes()
    run(*ASK, COUNT, "--output", "named.csv", "--format", "json")
    assert json.loads(Path("named.csv").read_text())["rows"] == rows


def test_json_carries_cost_rest_and_receipt(folder: Path) -> None:
    first, again = (json.loads(run(*ASK, COUNT, "--format", "json").stdout) for _ in range(2))
    assert (first["format"], first["version"]) == ("sfumato.answer", 1)
    assert first["cost"] == first["guarantee"] == {"epsilon": 0.5, "delta": 0.0}
    assert first["remaining"]["epsilon"] == pytest.approx(1.5)
    (receipt,) = first["receipts"]
    assert (receipt["sequence"], receipt["privacy_unit"]) == (1, "id")
    assert again["cost"] == {"epsilon": 0.0, "delta": 0.0}
    assert (again["receipts"], again["rows"]) == ([], first["rows"])


def test_every_ledger_command_and_explain_speak_json(folder: Path) -> None:
    receipt = json.loads(run(*ASK, COUNT, "--format", "json").stdout)["receipts"][0]
    grant = json.loads(run("ledger", "grant", "l", "ada", "--epsilon", "1", "--json").stdout)
    assert (grant["format"], grant["analyst"]) == ("sfumato.ledger-grant", "ada")
    shown = json.loads(run("ledger", "show", "l", "--json").stdout)
    assert shown["remaining"]["epsilon"] == pytest.approx(1.5)
    assert shown["spent"]["epsilon"] == pytest.approx(0.5)
    (charge,) = shown["charges"]
    assert (charge["digest"], charge["committed"]) == (receipt["digest"], True)
    (account,) = json.loads(run("ledger", "accounts", "l", "--json").stdout)["accounts"]
    assert (account["analyst"], account["budget"], account["charges"]) == ("ada", grant["budget"], 0)
    stored = json.loads(run("ledger", "release", "l", "1", "--json").stdout)
    assert stored["receipts"] == [receipt]
    assert json.loads(run("ledger", "verify", "l", "--json").stdout)["charges"] == 1
    key = json.loads(run("ledger", "key", "l", "--json").stdout)["public_key"]
    assert run("ledger", "key", "l").stdout == f"{key}\n"
    for words in (("head", "l"), ("export", "l")):
        plain = run("ledger", *words).stdout
        assert run("ledger", *words, "--json").stdout == plain
        assert all(json.loads(line) for line in plain.splitlines())
    explained = json.loads(run("explain", *ASK[1:], COUNT, "--json").stdout)
    assert explained["cost"] == {"epsilon": 0.5, "delta": 0.0}
    assert explained["explanation"] == run("explain", *ASK[1:], COUNT).stdout.splitlines()
    assert explained["losses"][0]["format"] == "sfumato.loss"
