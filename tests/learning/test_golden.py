"""What was stored is read back by this version: runs go on, and what is made today is the same bytes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from sfumato.errors import LedgerUnavailable
from sfumato.ledger import Ledger
from tests.run_time import run_time

if run_time(__name__):
    import torch

    from sfumato._wire import parse
    from sfumato.learning import PrivacyCard
    from sfumato.learning.reports.evaluation import EvaluationRecord
    from sfumato.learning.training.checkpoint.checkpoint import RUN, Checkpoint
    from sfumato.learning.training.checkpoint.sealing import RunSecrets, read_key, seal, unseal
    from sfumato.privacy.catalog import loss_from_json
    from tests.golden.learning import making

GOLDEN = Path(__file__).parents[1] / "golden" / "learning"


def read(name: str) -> bytes:
    return (GOLDEN / name).read_bytes()


def test_a_killed_run_goes_on_without_a_charge_and_ends_as_it_would_have(tmp_path: Path) -> None:
    for path in GOLDEN.glob("run.*"):
        shutil.copy(path, tmp_path)
    with making.open_ledger(tmp_path / "run.sqlite") as ledger:
        before = ledger.entries()
        assert ledger.run(1).claimed == making.KILLED_AT
        engine, run = making.training(ledger, resume_from=tmp_path / "run.pt")
        run(making.STEPS - making.KILLED_AT)
        assert ledger.entries() == before
        assert (ledger.run(1).left, len(before)) == (0, 1)
        assert ledger.verify().sound
        ended, stored = making.ended(engine), json.loads(read("run.json"))
        for name, weights in stored["weights"].items():
            assert ended["weights"][name] == pytest.approx(weights, abs=1e-5)
        assert ended["steps"] == stored["steps"] == making.STEPS
        now, then = loss_from_json(ended["loss"]), loss_from_json(stored["loss"])
        assert now.epsilon(1e-3) <= then.epsilon(1e-3) * (1 + 1e-12)
        assert engine.card(1e-3).epsilon == pytest.approx(before[0].epsilon, rel=1e-12)


def test_a_checkpoint_is_written_in_the_same_bytes() -> None:
    saved = Checkpoint.read(GOLDEN / "run.pt")
    written = torch.load(GOLDEN / "run.pt", weights_only=True)[RUN]
    assert saved.run_to_json() == written
    assert json.loads(written)["format"] == "sfumato.training-checkpoint"
    assert (saved.cursor, saved.foreign_steps) == (4, 0)
    assert saved.position is not None
    with Ledger.read(GOLDEN / "run.sqlite") as ledger:
        assert (saved.position.ledger, saved.position.claimed) == (ledger.ledger_id, 4)


def test_a_card_is_read_and_written_in_the_same_bytes() -> None:
    text = read("card.json").decode()
    assert PrivacyCard.from_json(text) == making.card()
    assert PrivacyCard.from_json(text).to_json() == text
    assert parse("card", text)["version"] == 1


def test_an_evaluation_is_read_and_written_in_the_same_bytes() -> None:
    found = EvaluationRecord.from_bytes(read("evaluation.json"))
    assert found == making.evaluation()
    assert found.to_bytes() == read("evaluation.json")
    assert found.accuracy == 0.0
    for other in (b"{}", read("card.json"), read("evaluation.json").replace(b'"version":1', b'"version":2')):
        with pytest.raises(LedgerUnavailable, match="an evaluation of a format that is known here"):
            EvaluationRecord.from_bytes(other)


def test_secrets_are_opened_and_sealed_in_the_same_bytes() -> None:
    content = RunSecrets(noise_key=making.KEY, sampling_seed=making.SEED)
    assert unseal(making.KEY, making.RUN, read("sealed.json")) == content
    with making.fixed_entropy():
        assert seal(making.KEY, making.RUN, content) == read("sealed.json")
    assert len(read_key(GOLDEN / "run.sqlite.training-key", make=False)) == 32


def test_seeds_draw_the_same_batches_and_keys_the_same_noise() -> None:
    assert making.sampler_states() == read("samplers.json")
    assert making.clipping_states() == read("clippings.json")
    made, stored = json.loads(making.noise_states()), json.loads(read("noises.json"))
    assert made.keys() == stored.keys()
    for name, state in stored.items():
        assert made[name]["parameters"] == state["parameters"]
        for now, then in zip(made[name]["steps"], state["steps"], strict=True):
            assert now == pytest.approx(then, abs=1)
