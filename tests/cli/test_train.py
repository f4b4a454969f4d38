"""``sfumato train``: a model, its card and its charge."""

from __future__ import annotations

import contextlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from sfumato.cli.commands import app
from sfumato.cli.process.interrupts import Interrupts
from sfumato.ledger import Ledger
from tests.run_time import run_time

if run_time(__name__):
    with contextlib.suppress(ImportError):  # without torch all is skipped
        import sfumato.learning.training.table_training  # noqa: F401 - its time is no test's own

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
    found = json.loads(done.stdout)
    assert found["format"] == "sfumato.predictions"
    first, second = found["rows"]
    assert (first["rich"], second["rich"]) == ("yes", "no")
    assert 0.5 <= first["probability"] <= 1.0


def test_an_evaluation_is_charged_stored_and_free_when_asked_again(people: Path, tmp_path: Path) -> None:
    """It is a noisy count, charged to the ledger, which knows the budget."""
    model, ledger = tmp_path / "model.pt", tmp_path / "people.ledger"
    shape = ("--epochs", 4, "--batch-size", 500, "--learning-rate", 0.2)
    spending = ("--epsilon", 40, "--spend", 30)
    assert run(people, *WORDS, "--output", model, "--ledger", ledger, *shape, *spending).exit_code == 0
    words = ["evaluate", str(model), str(people), "--spend", "0.5", "--ledger", str(ledger)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert (facts["rows"], facts["charge"], facts["epsilon"]) == (2002, 2, 0.5)
    assert facts["accuracy"] > 0.8
    assert facts["lower"] <= facts["accuracy"] <= facts["upper"]
    with Ledger.read(ledger) as book:
        assert [entry.epsilon for entry in book.entries()][1] == 0.5
    again = CliRunner().invoke(app, words)
    assert (again.exit_code, again.stdout) == (0, done.stdout), "another draw would be another answer"
    assert "cost nothing, paid before, charge 2" in again.stderr
    other = CliRunner().invoke(app, [*words[:4], "0.25", *words[5:]])
    assert json.loads(other.stdout)["charge"] == 3
    with Ledger.read(ledger) as book:
        assert [entry.committed for entry in book.entries()] == [False, True, True]
        stored = book.release(2).to_arrow().to_pylist()
    assert stored == [{name: facts[name] for name in ("correct", "rows", "accuracy", "lower", "upper")}]
    shown = CliRunner().invoke(app, ["ledger", "release", str(ledger), "2", "--format", "json"])
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["rows"] == stored
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


class Stopped:
    """Ctrl-C once so many epochs are done: nothing is saved because of it, as after a kill."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: int | None) -> None:
        self.seen: list[tuple[int, int]] = []
        self.interrupts = Interrupts()
        self._after = after
        place = "sfumato.learning.training.table_training.shown_progress"
        monkeypatch.setattr(place, lambda _progress, _words: contextlib.nullcontext(self.epochs))
        monkeypatch.setattr("sfumato.cli.train.interrupts", self.interrupts)

    def epochs(self, done: int, total: int) -> None:
        self.seen.append((done, total))
        if done == self._after:
            raise KeyboardInterrupt


def test_an_interrupted_run_says_what_it_was_charged(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = Stopped(monkeypatch, after=1)
    words = (*WORDS, "--epsilon", 4, "--epochs", 2, "--batch-size", 500, "--output", tmp_path / "m.pt")
    assert run(people, *words, "--ledger", tmp_path / "l").exit_code != 0
    line = stopped.interrupts.line()
    assert line.startswith("interrupted; charge 1 stays, (")
    assert line.endswith("2.5e-05)-DP, for the run was charged as a whole before its first step")
    forgotten = Stopped(monkeypatch, after=1)
    assert run(people, *words).exit_code != 0
    assert forgotten.interrupts.line().endswith("no --ledger was named")
    assert not (tmp_path / "m.pt").exists()


def test_an_interrupted_run_goes_on_by_the_same_command(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is charged once, as a whole; what was lost of it stays paid for, and is said."""
    torch = pytest.importorskip("torch")
    model, ledger, saved = tmp_path / "m.pt", tmp_path / "people.ledger", tmp_path / "run.pt"
    words = [people, *WORDS, "--output", model, "--ledger", ledger, "--epochs", 3, "--batch-size", 500]
    words += ["--checkpoint", saved, "--epsilon", 4, "--spend", 3]
    stopped = Stopped(monkeypatch, after=1)
    assert run(*words).exit_code != 0
    line = stopped.interrupts.line()
    assert line.endswith(f"before its first step; the same command goes on from {saved}")
    assert torch.load(saved, weights_only=True)["module_state_dict"]["0.weight"].any()
    first = saved.read_bytes(), (tmp_path / "run.pt.secrets").read_bytes()
    again = Stopped(monkeypatch, after=2)
    assert run(*words).exit_code != 0
    assert (
        again.interrupts.line()
        == f"interrupted; nothing was charged anew; the same command goes on from {saved}"
    )
    assert again.seen == [(1, 3), (2, 3)]
    # The last file was lost: what was saved before it goes on, without the steps in between.
    saved.write_bytes(first[0])
    (tmp_path / "run.pt.secrets").write_bytes(first[1])
    last = Stopped(monkeypatch, after=None)
    done = run(*words)
    assert done.exit_code == 0, done.output
    assert last.seen == [(1, 3), (3, 3)]
    card = json.loads(done.stdout)
    guarantee = card["privacy"]["guarantee"]
    assert (card["privacy"]["run"]["steps"], card["training"]["lost_steps"]) == (15, 5)
    assert "5 of these steps were lost by interruptions, and are paid for" in done.stderr
    with Ledger.read(ledger) as book:
        (entry,) = book.entries()
        assert (entry.steps, book.run(1).left) == (15, 0)
        assert entry.epsilon == pytest.approx(guarantee["epsilon"], rel=1e-12)
        assert book.verify().sound
    assert model.exists()
    assert not saved.exists()
    assert not (tmp_path / "run.pt.secrets").exists()


def test_a_run_goes_on_as_it_began_or_not_at_all(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    ledger, saved, one = tmp_path / "people.ledger", tmp_path / "run.pt", ["--epochs", 2, "--batch-size", 500]
    words = [people, *WORDS, "--output", tmp_path / "m.pt", "--epsilon", 4, "--checkpoint", saved, *one]
    Stopped(monkeypatch, after=1)
    assert run(*words, "--ledger", ledger).exit_code != 0
    Stopped(monkeypatch, after=None)
    for other, message in (
        (["--epochs", 3], "--epochs must be as the run of this checkpoint began, 2, got 3"),
        (["--batch-size", 400], "--batch-size must be as the run of this checkpoint began, 500, got 400"),
        (["--spend", 1], "epsilon must be as the run of this checkpoint began, 2.0, got 1.0"),
        (["--hidden", "4"], "--hidden must be as the run of this checkpoint began, [], got [4]"),
        (["--clip-norm", "2"], "--clip-norm must be as the run of this checkpoint began, 1.0, got 2.0"),
        (["--learning-rate", "2"], "--learning-rate must be as the run"),
        (["--number", "age=0:90"], "numbers must be as the run of this checkpoint began, age [0.0, 100.0]"),
        (["--target", "rich=yes,no"], "classes must be as the run of this checkpoint began"),
    ):
        refused = run(*words, *other, "--ledger", ledger)
        assert refused.exit_code == 2, refused.output
        assert message in " ".join(refused.stderr.split())
        assert "name another checkpoint to begin a run" in " ".join(refused.stderr.split())
    content = saved.read_bytes()
    whole = torch.load(saved, weights_only=True)
    for change in (
        {"sfumato_table": whole["sfumato_table"].replace('"taken":', '"taken":1')},
        {"module_state_dict": {name: 2 * value for name, value in whole["module_state_dict"].items()}},
    ):
        torch.save(whole | change, saved)
        altered = run(*words, "--ledger", ledger)
        assert (altered.exit_code, "checkpoint must be as it was written" in altered.stderr) == (1, True)
    torch.save({name: value for name, value in whole.items() if name != "sfumato_tag"}, saved)
    assert "checkpoint must be as it was written" in run(*words, "--ledger", ledger).stderr
    for foreign in (b"state", b"", whole["sfumato"].encode()):
        saved.write_bytes(foreign)
        other = run(*words, "--ledger", ledger)
        assert "--checkpoint must be a file of an interrupted training of a table, got" in other.stderr
    torch.save({name: value for name, value in whole.items() if name != "sfumato_table"}, saved)
    assert "must be a file of an interrupted training" in run(*words, "--ledger", ledger).stderr
    saved.write_bytes(content)
    other = run(*words, "--ledger", tmp_path / "other")
    assert (other.exit_code, "ledger must be the one that charged the run" in other.stderr) == (2, True)
    (tmp_path / "people.ledger.training-key").rename(tmp_path / "key")
    assert "pass --key-file FILE" in " ".join(run(*words, "--ledger", ledger).stderr.split())
    assert run(*words, "--ledger", ledger, "--key-file", tmp_path / "key").exit_code == 0
    with Ledger.read(ledger) as book:
        assert len(book.entries()) == 1


def test_a_checkpoint_that_would_not_do_is_named_before_the_charge(people: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "people.ledger"
    words = [people, *WORDS, "--output", tmp_path / "m.pt", "--epsilon", 4]
    for more, message in (
        (["--checkpoint", tmp_path / "run.pt"], "--checkpoint must be given with --ledger"),
        (["--key-file", tmp_path / "key"], "--key-file must be given with --checkpoint"),
        (["--checkpoint", tmp_path / "no" / "run.pt", "--ledger", ledger], "--checkpoint must be a file in"),
        (
            ["--checkpoint", tmp_path / "m.pt", "--ledger", ledger],
            "--checkpoint must not be the model's file",
        ),
        (
            ["--checkpoint", people, "--ledger", ledger],
            "--checkpoint must not be a file that the query reads",
        ),
        (["--checkpoint", ledger, "--ledger", ledger], "--checkpoint must not be the ledger"),
    ):
        refused = run(*words, *more)
        assert refused.exit_code == 2, refused.output
        assert message in " ".join(refused.stderr.split())
    assert not ledger.exists()


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
