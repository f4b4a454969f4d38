"""What a ledger, the environment and sfumato.toml say need not be said again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato.cli.commands import app
from sfumato.ledger import Ledger

COUNT = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.25, delta=0) COUNT(*) AS n FROM data"


def run(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = pa.table({"id": range(100), "user": range(100), "device": range(100)})
    pq.write_table(rows, tmp_path / "people.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("--privacy-unit", "id", "--epsilon", "2", "--delta", "1e-6"),
        ("--privacy-unit", "ROW", "--rho", "0.5"),
        ("--privacy-unit", "user", "--privacy-unit", "device", "--mu", "1"),
    ],
)
@pytest.mark.sharpest("words0", "words2")
def test_unit_and_budget_come_from_the_ledger(folder: Path, words: tuple[str, ...]) -> None:
    query = COUNT if "--epsilon" in words else COUNT.replace("delta=0", "delta=1e-6")
    first = run("sql", "people.parquet", *words, "--ledger", "l", query)
    assert first.exit_code == 0, first.output
    again = run("sql", "people.parquet", "--ledger", "l", query)
    assert "cost nothing" in again.stderr, again.output
    assert run("sql", "people.parquet", "--ledger", "l", "--epsilon", "3", query).exit_code == 1
    assert run("sql", "people.parquet", "--ledger", "none", query).exit_code == 2


def test_option_before_environment_before_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "sfumato.toml").write_text(
        'privacy-unit = "id"\nepsilon = 1.0\ndelta = 1e-6\nledger = "of the file"\n'
    )
    assert "left (0.75, " in run("sql", "people.parquet", COUNT).stderr
    monkeypatch.setenv("SFUMATO_LEDGER", "of the environment")
    monkeypatch.setenv("SFUMATO_RHO", "0.5")
    assert run("sql", "people.parquet", COUNT).exit_code == 0
    assert run("sql", "people.parquet", "--ledger", "named", "--epsilon", "3", COUNT).exit_code == 0
    found = {}
    for name in ("of the file", "of the environment", "named"):
        with Ledger.read(name) as ledger:
            found[name] = (ledger.budget.epsilon, ledger.budget.rho)
    assert found == {"of the file": (1.0, None), "of the environment": (None, 0.5), "named": (3.0, None)}


def test_a_unit_of_several_columns_in_the_file(folder: Path) -> None:
    (folder / "sfumato.toml").write_text('privacy-unit = ["user", "device"]\nepsilon = 1\nledger = "l"\n')
    assert run("sql", "people.parquet", COUNT).exit_code == 0
    with Ledger.read("l") as ledger:
        assert ledger.privacy_unit == 'connected component of "user" and "device"'


@pytest.mark.parametrize("text", ["epsilom = 1", "epsilon = ", "new-version = true", "[sql]\nepsilon = 1"])
@pytest.mark.sharpest("epsilom = 1", "epsilon = ")
def test_what_the_file_may_not_say(folder: Path, text: str) -> None:
    (folder / "sfumato.toml").write_text(text)
    done = run("sql", "people.parquet", COUNT)
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert "sfumato.toml must" in line
    assert ("did you mean 'epsilon'" in line) == (text == "epsilom = 1")


def test_other_commands_read_no_settings(folder: Path) -> None:
    (folder / "sfumato.toml").write_text("epsilon = 1\ndelta = 0.1")
    assert "at delta 0 " in run("epsilon", "--laplace", "2").stdout
