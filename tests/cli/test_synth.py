"""``sfumato synth``: rows and a model from one charge, and what is refused before it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sfumato.cli.commands import app
from sfumato.ledger.ledger import Ledger
from sfumato.synthetic import SyntheticModel, TableDomain
from tests.cases import cases

DOMAIN = "[age]\nlower = 0\nupper = 100\nbins = 4\n\n[sex]\nvalues = ['f', 'm']\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = {
        "id": [i // 2 for i in range(2000)],
        "age": [i % 100 for i in range(2000)],
        "sex": ["f", "m"] * 1000,
    }
    pq.write_table(pa.table(rows), tmp_path / "data.parquet")
    (tmp_path / "d.toml").write_text(DOMAIN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def synth(*words: object) -> Any:
    return CliRunner().invoke(app, ["synth", "data.parquet", *map(str, words)])


USUAL = ("--domain", "d.toml", "-o", "o.parquet")


def test_rows_are_written_for_the_whole_budget_each_row_a_person(folder: Path) -> None:
    done = synth(*USUAL, "--epsilon", "1")
    assert done.exit_code == 0, done.output
    table = pq.read_table(folder / "o.parquet")
    assert table.schema.names == ["age", "sex"]
    assert abs(table.num_rows - 2000) < 300
    assert set(table["age"].to_pylist()) <= set(TableDomain.from_toml("d.toml")["age"].labels)
    assert f"o.parquet: {table.num_rows:,} rows of 2 columns" in done.stderr
    assert "cost (1, 5e-10)-DP" in done.stderr
    assert "each row counts as a person" in done.stderr
    assert "no --ledger: this budget ends here" in done.stderr


def test_constraints_of_the_file_hold_in_each_row(folder: Path) -> None:
    zeros = "[[constraints]]\nwhen = {age = '< 50'}\nthen = {sex = 'f'}\n"
    (folder / "d.toml").write_text(f"{DOMAIN}\n{zeros}")
    assert synth(*USUAL, "--epsilon", "0.5", "--model", "m.json").exit_code == 0
    domain, rows = TableDomain.from_toml("d.toml"), pq.read_table(folder / "o.parquet")
    young = set(domain["age"].labels[:2])
    pairs = zip(rows["age"].to_pylist(), rows["sex"].to_pylist(), strict=True)
    assert {sex for age, sex in pairs if age in young} == {"f"}
    assert set(rows["sex"].to_pylist()) == {"f", "m"}
    model = SyntheticModel.from_json((folder / "m.json").read_text())
    assert model.marginal("age", "sex")[:2, 1].tolist() == [0.0, 0.0]


def test_a_ledger_answers_the_same_model_again_for_nothing(folder: Path) -> None:
    paid = ("--ledger", "l", "--spend", "0.5", "--max-rows-contributed", "2", "--method", "mst")
    first = synth(
        "--domain", "d.toml", "-o", "o.csv", *paid, "--epsilon", 2, "--delta", "1e-6", "--privacy-unit", "id",
        "--rows", "7", "--within-bins", "--model", "m.json",
    )  # fmt: skip
    assert first.exit_code == 0, first.output
    assert "cost (0.5, 1.25e-07)-DP" in first.stderr
    numbers = pyarrow.csv.read_csv(folder / "o.csv")
    assert (numbers.num_rows, numbers.schema.field("age").type) == (7, pa.float64())
    domain = TableDomain.from_toml("d.toml")
    (folder / "d.json").write_text(domain.to_json())
    again = synth("--domain", "d.json", "-o", "o.json", *paid, "--rows", "3", "--model", "n.json")
    assert again.exit_code == 0, again.output
    assert "cost nothing: the model was paid for before" in again.stderr
    assert len(json.loads((folder / "o.json").read_text())) == 3
    assert (folder / "m.json").read_text() == (folder / "n.json").read_text()
    assert SyntheticModel.from_json((folder / "m.json").read_text()).domain == domain
    with Ledger.read(folder / "l") as ledger:
        (entry,) = ledger.entries()
        assert entry.description == "synthetic table by mst: age, sex"


REFUSED = [
    (("--domain", "d.toml", "-o", "o.txt", "--epsilon", "1"), "output must end in .parquet, .csv or .json"),
    (
        ("--domain", "d.toml", "-o", "data.parquet", "--epsilon", "1"),
        "must not be a file that the query reads",
    ),
    ((*USUAL, "--epsilon", "1", "--model", "o.parquet"), "must not be the file of the rows"),
    ((*USUAL, "--epsilon", "1", "--model", "d.toml"), "--model must not be the file of the domain"),
    (("--domain", "d.csv", "-o", "d.csv", "--epsilon", "1"), "output must not be the file of the domain"),
    ((*USUAL, "--epsilon", "1", "--model", "no/m.json"), "--model must be a file in a folder that exists"),
    (("--domain", "no.toml", "-o", "o.parquet", "--epsilon", "1"), "path must be a TOML file"),
    (("--domain", "no.json", "-o", "o.parquet", "--epsilon", "1"), "--domain must be a readable file"),
    (USUAL, "--epsilon must be given"),
    ((*USUAL, "--epsilon", "1", "--spend", "-1"), "--spend must be"),
    ((*USUAL, "--epsilon", "1", "--spend", "2"), "charge must fit into the budget"),
    ((*USUAL, "--epsilon", "1", "--order", "3"), "columns must be at most the domain's 2"),
    ((*USUAL, "--epsilon", "1", "--target", "town"), "column must be one of ['age', 'sex'], got 'town'"),
    ((*USUAL, "--epsilon", "1", "--privacy-unit", "town"), "town"),
    ((*USUAL, "--epsilon", "1", "--rows", 10**14), "--rows must be at most 536870912 with 2 columns"),
]


@cases(("words", "message"), REFUSED)
def test_what_cannot_be_done_is_refused_and_nothing_is_written(
    words: tuple[str, ...], message: str, folder: Path
) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for ledger in ((), ("--ledger", "new.ledger")):
        done = synth(*words, *ledger)
        assert done.exit_code != 0
        assert message in done.stderr
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_ledger_that_has_the_budget_wants_to_know_what_to_spend(folder: Path) -> None:
    assert synth(*USUAL, "--epsilon", "1", "--spend", "0.2", "--ledger", "l").exit_code == 0
    done = synth(*USUAL, "--ledger", "l")
    assert done.exit_code == 2
    assert "--spend must be given where the ledger has the budget" in done.stderr
    assert "cost nothing" in synth(*USUAL, "--ledger", "l", "--spend", "0.2").stderr
    assert (folder / "o.parquet").exists()


def test_a_model_that_cannot_be_written_is_stored_in_the_ledger(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = (*USUAL, "--epsilon", "1", "--spend", "0.2", "--ledger", "l", "--model", "m.json")
    with monkeypatch.context() as full:
        full.setattr(Path, "write_bytes", _full)
        done = synth(*asked)
    assert done.exit_code != 0
    assert "--model must be writable" in done.stderr
    assert "asking again with this --ledger costs nothing" in done.stderr
    assert "cost nothing" in synth(*asked).stderr
    assert (folder / "m.json").exists()


def _full(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")
