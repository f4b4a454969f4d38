"""A run of Hugging Face's Trainer that is stopped goes on from its checkpoint, and is charged once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import LedgerMismatch, LedgerUnavailable, ParameterError
from tests.run_time import run_time

if run_time(__name__):
    from transformers import TrainerCallback

    from tests.learning.adapters.tiny import open_ledger, privacy, same, trainer, weights


SAVING = {"save_strategy": "steps", "save_steps": 3}


class Stopped(Exception):
    pass


if run_time(__name__):

    class Stop(TrainerCallback):  # type: ignore[misc]
        """Ends the process, as far as it knows, at a step."""

        def __init__(self, step: int) -> None:
            self.step = step

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == self.step:
                raise Stopped


def stopped(folder: Path, **changes: Any) -> Any:
    made = trainer(folder, arg=SAVING, callbacks=[Stop(5)], **changes)
    with pytest.raises(Stopped):
        made.train()
    return made


def test_it_goes_on_as_if_it_had_not_been_stopped(tmp_path: Path) -> None:
    stopped(tmp_path / "a")
    again = trainer(tmp_path / "a", arg=SAVING)
    with pytest.warns(UserWarning, match="without a ledger a run goes on"):
        again.train(resume_from_checkpoint=True)
    whole = trainer(tmp_path / "b", arg=SAVING)
    whole.train()
    assert again.state.global_step == whole.state.global_step == 10
    assert again.get_epsilon() == whole.get_epsilon()
    assert same(weights(again.model), weights(whole.model))


def test_a_ledger_is_charged_once(tmp_path: Path) -> None:
    real = {"noise_generator": None}
    with open_ledger(tmp_path / "a.ledger") as ledger:
        asked = privacy(ledger=ledger, options=real)
        stopped(tmp_path, privacy=asked)
        (charge,) = ledger.entries()
        assert charge.steps == 10
        again = trainer(tmp_path, arg=SAVING, privacy=asked)
        with pytest.warns(UserWarning, match="training stops here"):
            again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
        assert len(ledger.entries()) == 1
        # Five steps were claimed by the first process, three of which the checkpoint knows.
        assert again.state.global_step == 3 + 5
        assert again.privacy_engine.run.cursor == 10
        assert again.get_epsilon() == again.privacy_engine.run.loss_of(10).epsilon(1e-3)


def test_secrets_lie_apart_from_what_is_published(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "a.ledger") as ledger:
        made = stopped(tmp_path / "out", privacy=privacy(ledger=ledger, options={"noise_generator": None}))
        secret = made.privacy_engine.run.noise.key
    published = [
        path for path in (tmp_path / "out").rglob("*") if path.is_file() and "_privacy" not in path.parts
    ]
    assert {path.parent.name for path in published} == {"checkpoint-3"}
    for path in [*published, tmp_path / "out" / "_privacy" / "checkpoint-3.pt"]:
        content = path.read_bytes()
        assert secret not in content
        assert secret.hex().encode() not in content
    assert (tmp_path / "out" / "_privacy" / "checkpoint-3.pt.secrets").stat().st_mode & 0o777 == 0o600


def test_no_checkpoint_goes_on_without_its_part(tmp_path: Path) -> None:
    stopped(tmp_path)
    (tmp_path / "_privacy" / "checkpoint-3.pt").unlink()
    with pytest.raises(LedgerUnavailable, match="checkpoint must be a readable file"):
        trainer(tmp_path, arg=SAVING).train(resume_from_checkpoint=True)
    with pytest.raises(ParameterError, match="output_dir must have a checkpoint"):
        trainer(tmp_path / "none").train(resume_from_checkpoint=True)


def test_another_noise_is_another_run(tmp_path: Path) -> None:
    stopped(tmp_path)
    with pytest.raises(LedgerMismatch, match="noise_multiplier must be the one that the run began with"):
        trainer(tmp_path, arg=SAVING, privacy=privacy(noise_multiplier=0.7)).train(
            resume_from_checkpoint=True
        )


@pytest.mark.filterwarnings("ignore:mtime may not be reliable")  # some versions', where saves are fast
def test_parts_go_with_their_checkpoints(tmp_path: Path) -> None:
    trainer(tmp_path, arg=SAVING | {"save_total_limit": 2}).train()
    assert {path.stem for path in (tmp_path / "_privacy").iterdir()} == {"checkpoint-9", "checkpoint-10"}
    assert {path.name for path in tmp_path.glob("checkpoint-*")} == {"checkpoint-9", "checkpoint-10"}
