"""Hugging Face's Trainer trains as a loop over PrivacyEngine does, and tells no more."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError, UnfitModule
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import nn
    from torch.utils.data import DataLoader
    from transformers import default_data_collator

    from sfumato.learning.adapters.example_losses import example_losses
    from sfumato.learning.adapters.trainer import PrivateTrainer
    from sfumato.learning.training.privacy_engine import PrivacyEngine
    from sfumato.learning.training.setup.options import GradientOptions, SamplingOptions
    from tests.learning.adapters.tiny import (
        EXAMPLES,
        MODELS,
        arguments,
        bert,
        examples,
        privacy,
        same,
        sgd,
        trainer,
        weights,
    )


KINDS = {
    "sequences": "ForSequenceClassification",
    "tokens": "ForTokenClassification",
    "masked": "ForMaskedLM",
}


def plain_loop(name: str, *, steps: int, bf16: bool = False) -> nn.Module:
    """The same run by hand: eight examples expected, at most four at a time."""
    module = MODELS[name]()
    optimizer, schedule = sgd(module)
    engine = PrivacyEngine()
    _, _, loader = engine.make_private(
        module=module,
        optimizer=optimizer,
        data_loader=DataLoader(examples(name), batch_size=8, collate_fn=default_data_collator),  # type: ignore[arg-type]
        noise_multiplier=0.8,
        max_grad_norm=0.5,
        noise_generator=7,
        sampling=SamplingOptions(steps=steps, max_physical_batch_size=4),
        gradients=GradientOptions(self_test=False),
    )
    module.train()
    done = 0
    while done < steps:
        for batch in loader:
            labels = batch.pop("labels")
            if len(labels):
                with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                    logits = module(**batch).logits.float()
                example_losses(logits, labels, KINDS.get(name, "ForCausalLM")).mean().backward()
            optimizer.step()
            if loader.ended:
                schedule.step()
                done += 1
    engine.detach()
    return module


@pytest.mark.parametrize("name", ["sequences", "tokens", "masked", "gpt2", "llama"])
def test_it_trains_as_a_loop_by_hand_bit_by_bit(name: str, tmp_path: Path) -> None:
    module = MODELS[name]()
    before = weights(module)
    trainer(tmp_path, module, train_dataset=examples(name)).train()
    assert same(weights(module), weights(plain_loop(name, steps=10)))
    assert not same(weights(module), before)


def test_it_trains_so_in_bfloat16_too(tmp_path: Path) -> None:
    module = bert()
    trainer(tmp_path, module, arg={"bf16": True}).train()
    assert same(weights(module), weights(plain_loop("sequences", steps=10, bf16=True)))
    assert not same(weights(module), weights(plain_loop("sequences", steps=10)))


def test_each_optimizer_step_is_one_private_step_on_parts(tmp_path: Path) -> None:
    sizes: list[int] = []

    def collate(rows: list[Any]) -> Any:
        sizes.append(len(rows))
        return default_data_collator(rows)

    made = trainer(tmp_path, data_collator=collate)
    made.train()
    run = made.privacy_engine.run
    assert run.released == run.cursor == made.state.global_step == 2 * EXAMPLES // 8
    assert run.sampler.expected_batch_size == 8
    assert max(sizes) == 4 < max(len(run.sampler.batch(step)) for step in range(10))
    assert made.get_epsilon() == run.loss_of(10).epsilon(1e-3)


def test_evaluation_is_no_training(tmp_path: Path) -> None:
    often = {"eval_strategy": "steps", "eval_steps": 1, "eval_on_start": True}
    watched = trainer(tmp_path, arg=often, eval_dataset=examples(count=7))
    plain = trainer(tmp_path)
    watched.train()
    watched.evaluate()
    watched.predict(examples(count=5))
    plain.train()
    assert same(weights(watched.model), weights(plain.model))
    assert watched.get_epsilon() == plain.get_epsilon()
    assert sum("eval_loss" in entry for entry in watched.state.log_history) >= 11


def test_logs_tell_epsilon_and_nothing_of_private_rows(tmp_path: Path) -> None:
    made = trainer(tmp_path, arg={"save_strategy": "epoch"})
    output = made.train()
    logged = [entry for entry in made.state.log_history if "learning_rate" in entry]
    assert [entry["step"] for entry in logged] == [2, 4, 6, 8, 10]
    spent = [entry["epsilon"] for entry in logged]
    assert spent == sorted(set(spent))
    assert spent[-1] == made.get_epsilon()
    state = json.loads((tmp_path / "checkpoint-10" / "trainer_state.json").read_text())
    assert state["total_flos"] == 0
    for entry in [*made.state.log_history, *state["log_history"], output.metrics]:
        assert not {"loss", "train_loss", "grad_norm", "total_flos"} & set(entry)
    assert math.isnan(output.training_loss)


def test_the_loss_is_told_to_those_who_ask(tmp_path: Path) -> None:
    made = trainer(tmp_path, privacy=privacy(show_loss=True))
    output = made.train()
    told = [entry["loss"] for entry in made.state.log_history if "loss" in entry]
    assert len(told) == 5
    assert output.training_loss == pytest.approx(sum(told) / 5)
    assert 0.5 < output.training_loss < 2


def test_noise_is_found_for_the_epsilon_that_is_asked(tmp_path: Path) -> None:
    asked = privacy(noise_multiplier=None, target_epsilon=2.0)
    made = trainer(tmp_path, privacy=asked, arg={"max_steps": 7})
    assert made.get_epsilon() == 0
    made.train()
    assert made.state.global_step == 7
    assert 1.99 < made.get_epsilon() <= 2.0


def test_its_own_optimizer_and_schedule_serve(tmp_path: Path) -> None:
    made = trainer(tmp_path, optimizers=(None, None), arg={"lr_scheduler_type": "linear"})
    made.train()
    assert type(made.privacy_engine.parts.optimizer).__name__ == "AdamW"
    rates = [entry["learning_rate"] for entry in made.state.log_history if "learning_rate" in entry]
    assert rates == pytest.approx([0.09, 0.07, 0.05, 0.03, 0.01])


def new_bert() -> nn.Module:
    return bert()


def test_a_model_that_is_made_for_the_run_serves(tmp_path: Path) -> None:
    made = PrivateTrainer(
        args=arguments(tmp_path), train_dataset=examples(), model_init=new_bert, privacy=privacy()
    )
    first = made.model
    made.train()
    assert made.privacy_engine.run.engine.module is made.model is not first


def test_batches_of_nobody_cost_a_step(tmp_path: Path) -> None:
    made = trainer(
        tmp_path,
        train_dataset=examples(count=8),
        arg={"per_device_train_batch_size": 1, "gradient_accumulation_steps": 1, "num_train_epochs": 3},
    )
    made.train()
    run = made.privacy_engine.run
    assert 0 in [len(run.sampler.batch(step)) for step in range(24)]
    assert run.cursor == run.released == made.state.global_step == 24


def test_the_self_test_sees_the_users_model(tmp_path: Path) -> None:
    fit = bert()
    tested = privacy(options={"gradients": GradientOptions()})
    trainer(tmp_path, fit, arg={"max_steps": 2}, privacy=tested).train()
    unfit: Any = bert()
    mixes = nn.Sequential(nn.Linear(8, 8), _Mixing())
    unfit.bert.pooler.dense = mixes
    made = trainer(tmp_path, unfit, privacy=privacy(options={"gradients": GradientOptions()}))
    with pytest.raises(UnfitModule):
        made.train()
    assert made.get_epsilon() == 0


if run_time(__name__):

    class _Mixing(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x - x.mean(0)


def test_a_loss_of_ones_own_is_of_each_example(tmp_path: Path) -> None:
    def per_example(outputs: Any, labels: torch.Tensor, num_items_in_batch: Any = None) -> torch.Tensor:
        return nn.functional.cross_entropy(outputs.logits, labels, reduction="none")

    def of_the_batch(outputs: Any, labels: torch.Tensor, num_items_in_batch: Any = None) -> torch.Tensor:
        return nn.functional.cross_entropy(outputs.logits, labels)

    own, usual = trainer(tmp_path, compute_loss_func=per_example), trainer(tmp_path)
    own.train()
    usual.train()
    assert same(weights(own.model), weights(usual.model))
    with pytest.raises(ParameterError, match="compute_loss_func must return one loss for each example"):
        trainer(tmp_path, compute_loss_func=of_the_batch).train()


def test_a_module_of_ones_own_needs_a_loss(tmp_path: Path) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = nn.Linear(2, 1)

        def forward(self, x: torch.Tensor, labels: Any = None) -> dict[str, torch.Tensor]:
            return {"logits": self.line(x)}

    rows = [{"x": torch.randn(2), "labels": torch.randn(1)} for _ in range(16)]
    with pytest.raises(ParameterError, match="pass compute_loss_func"):
        trainer(tmp_path, Net(), train_dataset=rows).train()

    def squares(outputs: Any, labels: torch.Tensor, num_items_in_batch: Any = None) -> torch.Tensor:
        losses: torch.Tensor = (outputs["logits"] - labels).square().sum(1)
        return losses

    made = trainer(tmp_path, Net(), train_dataset=rows, compute_loss_func=squares)
    made.train()
    assert made.privacy_engine.run.cursor == 4


def test_a_trainer_trains_once(tmp_path: Path) -> None:
    made = trainer(tmp_path, arg={"max_steps": 1})
    made.train()
    with pytest.raises(ParameterError, match="train only once"):
        made.train()
    with pytest.raises(ParameterError, match="asked for by train"):
        made.get_train_dataloader()


def test_arguments_stay_as_they_were_given(tmp_path: Path) -> None:
    given = arguments(tmp_path)
    trainer(tmp_path)
    assert (given.gradient_accumulation_steps, given.max_grad_norm) == (2, 1.0)


def test_steps_noise_and_card_follow_from_a_declared_number_of_examples(tmp_path: Path) -> None:
    told = []
    for count in (40, 41):
        options = {"sampling": SamplingOptions(population=40)}
        asked = privacy(options=options, target_epsilon=3.0, noise_multiplier=None)
        made = trainer(tmp_path, privacy=asked, train_dataset=examples(count=count))
        made.train()
        engine = made.privacy_engine
        told.append((engine.card(1e-3).to_json(), engine.parts.identity, made.state.global_step))
    assert told[0] == told[1]
    assert "add-remove" in told[0][0]
