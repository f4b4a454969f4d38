"""A training of a table's classifier that is killed, and goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sfumato
from sfumato.errors import LedgerCorrupt, LedgerUnavailable, ParameterError, SourceError
from sfumato.ledger import Ledger
from sfumato.privacy.accountant import intervals
from tests.run_time import run_time

if run_time(__name__):
    import pyarrow as pa
    import torch

    from sfumato.learning import Columns, train_table
    from sfumato.learning.training.checkpoint import checkpoint as written

Open = Callable[..., Ledger]


def trained(ledger: Ledger | None, checkpoint: Path, **changes: Any) -> Any:
    columns = Columns(target="y", classes=["no", "yes"], numbers={"age": (0, 100)}, categories={})
    data = columns.read(pa.table({"age": list(range(100)), "y": ["no", "yes"] * 50}))
    usual: dict[str, Any] = {
        "hidden": [],
        "epsilon": 1.0,
        "delta": 1e-5,
        "epochs": 2,
        "batch_size": 50,
        "learning_rate": 0.1,
        "clip_norm": 1.0,
        "description": "a test",
    }
    return train_table(data, columns, ledger=ledger, checkpoint=checkpoint, **(usual | changes))


def test_what_could_not_be_saved_is_not_charged(open_ledger: Open, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="ledger must be given with a checkpoint"):
        trained(None, tmp_path / "run.pt")
    memory = open_ledger(simulated=False)
    with pytest.raises(LedgerUnavailable, match="training key must lie in a file"):
        trained(memory, tmp_path / "run.pt")
    assert not memory.entries()
    done = trained(memory, tmp_path / "run.pt", key_file=tmp_path / "key")
    assert (tmp_path / "run.pt").exists()
    done.save(tmp_path / "model.pt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["key", "model.pt"]


def test_a_run_that_is_complete_goes_on_to_its_model(open_ledger: Open, tmp_path: Path) -> None:
    """Killed after the last step and before the model was written, or the model had no room."""
    ledger = open_ledger(tmp_path / "kept.ledger", simulated=False)
    first = trained(ledger, tmp_path / "run.pt")
    intervals._known.cache_clear()  # another process knows no narrower bounds
    epochs: list[tuple[int, int]] = []
    again = trained(ledger, tmp_path / "run.pt", progress=lambda *done: epochs.append(done))
    assert epochs == [(2, 2)]
    assert (again.card, len(ledger.entries())) == (first.card, 1)
    assert "lost_steps" not in first.card["training"]
    for one, other in zip(first.module.parameters(), again.module.parameters(), strict=True):
        assert one.equal(other)


def test_a_checkpoint_without_its_tag_is_not_gone_on_from(open_ledger: Open, tmp_path: Path) -> None:
    """Whoever alters a file could leave the tag out, as files of earlier versions do."""
    ledger, path = open_ledger(tmp_path / "kept.ledger", simulated=False), tmp_path / "run.pt"
    trained(ledger, path)
    content = torch.load(path, weights_only=True)
    assert content.pop(written.TAG)
    torch.save(content, path)
    with pytest.raises(LedgerCorrupt, match="checkpoint must be as it was written, by a run on this ledger"):
        trained(ledger, path)


def test_a_checkpoint_without_room_is_said(
    open_ledger: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes, **_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(written, "write_whole", full)
    ledger = open_ledger(tmp_path / "kept.ledger", simulated=False)
    with pytest.raises(SourceError, match=r"No space left on device\); the run is charged all the same"):
        trained(ledger, tmp_path / "run.pt")


# Kills itself while the ninth checkpoint is put in place: it is on the disk, the eighth still has the name.
KILLED = """
import os, signal, sys
from sfumato.cli.main import main
renamed = []
def hook(event, arguments):
    if event == "os.rename" and str(arguments[1]).endswith("run.pt"):
        renamed.append(event)
        if len(renamed) == 9:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
main()
"""


@pytest.mark.exhaustive  # processes that load torch
def test_a_killed_command_goes_on(tmp_path: Path) -> None:
    rows = [f"{i % 100},{'yes' if i % 100 > 50 else 'no'}" for i in range(1000)]
    (tmp_path / "people.csv").write_text("\n".join(["age,rich", *rows]))
    saved = tmp_path / "run.pt"
    words = ["train", "people.csv", "--target", "rich=no,yes", "--number", "age=0:100", "--epsilon", "4"]
    words += ["--delta", "1e-4", "--ledger", "l", "--output", "m.pt", "--checkpoint", str(saved)]
    words += ["--epochs", "30", "--batch-size", "100"]
    environment = {**os.environ, "PYTHONPATH": str(Path(sfumato.__file__).parents[1])}

    def command(code: str) -> subprocess.CompletedProcess[str]:
        arguments = [sys.executable, "-c", code, *words]
        where: dict[str, Any] = {"cwd": tmp_path, "env": environment}
        return subprocess.run(arguments, check=False, capture_output=True, text=True, **where)

    killed = command(KILLED)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    done = command("from sfumato.cli.main import main; main()")
    assert done.returncode == 0, done.stderr
    card = json.loads(done.stdout)
    assert card["training"].get("lost_steps", 0) <= 6  # those since the eighth
    with Ledger.read(tmp_path / "l") as ledger:
        (entry,) = ledger.entries()
        assert (entry.steps, ledger.run(1).left) == (300, 0)
        # Not more than before the interruption, though another process reads it with less effort.
        assert card["privacy"]["guarantee"]["epsilon"] <= entry.epsilon <= 2.0
        assert ledger.verify().sound
    assert not saved.exists()
