"""``sfumato train``: a model, its card and its charge."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from sfumato.cli.commands import app
from sfumato.ledger import Ledger

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
WORDS = ["--target", "rich=no,yes", "--number", "age=0:100", "--category", "town=A,B", "--delta", "1e-4"]


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    ages, towns = rng.integers(0, 100, 2000), rng.choice(["A", "B"], 2000)
    rows = [f"{a},{t},{'yes' if a > 50 else 'no'}" for a, t in zip(ages, towns, strict=True)]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["age,town,rich", ",A,no", "30,C,unknown", *rows]))
    return path


def run(*words: object) -> Any:
    return CliRunner().invoke(app, ["train", *map(str, words)])


def predicted(people: Path, model: Path) -> None:
    """Predictions of rows without the target, in their order."""
    rows = people.with_name("new.csv")
    rows.write_text("town,age\nA,95\nB,5\n")
    done = CliRunner().invoke(app, ["predict", str(model), str(rows), "--format", "json"])
    assert done.exit_code == 0, done.output
    first, second = json.loads(done.stdout)
    assert (first["rich"], second["rich"]) == ("yes", "no")
    assert 0.5 <= first["probability"] <= 1.0


def evaluated(people: Path, model: Path, ledger: Path) -> None:
    """An evaluation is a noisy count, charged to the ledger, which knows the budget."""
    words = ["evaluate", str(model), str(people), "--spend", "0.5", "--ledger", str(ledger)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert (facts["rows"], facts["charge"], facts["epsilon"]) == (2002, 2, 0.5)
    assert facts["accuracy"] > 0.8
    assert facts["lower"] <= facts["accuracy"] <= facts["upper"]
    with Ledger.read(ledger) as book:
        assert [entry.epsilon for entry in book.entries()][1] == 0.5
    wrong = CliRunner().invoke(app, ["evaluate", str(people), *words[2:]])
    assert wrong.exit_code == 1
    assert "model must be a file of sfumato train" in wrong.stderr


def test_a_model_is_trained_charged_and_told_of(people: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model, ledger = tmp_path / "model.pt", tmp_path / "people.ledger"
    again = ("--output", model, "--ledger", ledger, "--epsilon", 4, "--spend", 3)
    done = run(people, *WORDS, *again, "--hidden", "8", "--epochs", 3)
    assert done.exit_code == 0, done.output
    card = json.loads(done.stdout)
    assert (card["format"], card["version"]) == ("sfumato.table-classifier", 1)
    guarantee = card["privacy"]["guarantee"]
    assert guarantee["epsilon"] <= 3.0
    assert guarantee["delta"] == 2.5e-5
    assert (card["privacy"]["run"]["steps"], card["model"]["hidden"]) == (24, [8])
    kept = torch.load(model, weights_only=True)
    assert json.loads(kept["sfumato"]) == card
    weights = kept["state_dict"]
    inputs = torch.tensor([[0.9, 1.0, 0.0], [-0.9, 0.0, 1.0]])
    hidden = torch.tanh(inputs @ weights["0.weight"].T + weights["0.bias"])
    assert (hidden @ weights["2.weight"].T + weights["2.bias"]).argmax(1).tolist() == [1, 0]
    with Ledger.read(ledger) as book:
        (entry,) = book.entries()
        assert (entry.steps, entry.description) == (24, "sfumato train rich")
        assert entry.epsilon == pytest.approx(guarantee["epsilon"], rel=1e-12)
    assert "learns about each row at most (" in done.stderr
    assert "by 24 noisy steps; charged as a whole" in done.stderr
    predicted(people, model)
    evaluated(people, model, ledger)
    refused = run(people, *WORDS, *again, "--epochs", 3)
    assert refused.exit_code == 3
    assert "charge must fit" in refused.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--number", "age=9"], "number must be NAME=LOWER:UPPER"),
        (["--number", "age=9:1"], "lower bound below the upper"),
        (["--category", "town"], "category must be NAME=VALUE,VALUE"),
        (["--target", "rich=yes"], "two or more different classes"),
        (["--category", "height=a,b"], "columns must be in the table, got 'height'"),
        (["--hidden", "x"], "hidden must be whole numbers"),
        (["--epochs", "0"], "epochs must be an integer"),
        (["--batch-size", "0"], "--batch-size must be an integer of at least 1"),
        (["--learning-rate", "-1"], "--learning-rate must be positive"),
    ],
)
def test_wrong_words_are_named(people: Path, tmp_path: Path, words: list[str], message: str) -> None:
    done = run(people, *WORDS, "--output", tmp_path / "m.pt", "--epsilon", 1, *words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (tmp_path / "m.pt").exists()


def test_a_model_that_has_no_place_is_not_charged(people: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "people.ledger"
    for output in (tmp_path / "none" / "m.pt", tmp_path):
        done = run(people, *WORDS, "--output", output, "--ledger", ledger, "--epsilon", 1)
        assert done.exit_code == 2
        assert "output must be a file in a folder that exists" in done.stderr
    assert not ledger.exists()


def test_a_model_that_cannot_be_written_is_told_of(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sfumato.learning.training import table_classifier  # noqa: PLC0415 - beside torch

    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(table_classifier, "write_whole", full)
    words = ["--output", tmp_path / "m.pt", "--epsilon", 1, "--epochs", 1]
    done = run(people, *WORDS, *words)
    assert done.exit_code == 1
    assert "No space left on device); the run is charged all the same" in done.stderr


@pytest.mark.parametrize("odd", [b"abc,A,0.5", b"\xff,\xfe,\xfd", b"7,A", b"7,A,1,2", b",,", b"1e999,B,true"])
def test_one_odd_row_of_a_file_changes_no_other(tmp_path: Path, odd: bytes) -> None:
    torch = pytest.importorskip("torch")
    from sfumato.cli.train import read_rows  # noqa: PLC0415 - beside torch
    from sfumato.learning import Columns  # noqa: PLC0415

    columns = Columns(
        target="rich", classes=["0", "1"], numbers={"age": (0, 100)}, categories={"town": ["A", "B"]}
    )
    rows = [b"age,town,rich", *[b"%d,%s,%d" % (i, b"AB"[i % 2 : i % 2 + 1], i % 2) for i in range(20)]]
    found = []
    for name, more in (("plain.csv", []), ("odd.csv", [odd])):
        (tmp_path / name).write_bytes(b"\n".join([*rows, *more]))
        found.append(columns.read(read_rows(tmp_path / name, ["rich", "age", "town", "none"])).tensors)
    assert len(found[0][0]) == 20
    for plain, with_odd in zip(*found, strict=True):
        assert torch.equal(plain, with_odd[:20])
