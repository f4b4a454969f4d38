"""What would break the guarantee in Hugging Face's Trainer is one clear error each, before rows are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch.utils.data import IterableDataset, SequentialSampler
    from transformers import Trainer, default_data_collator

    from sfumato.learning.adapters.privacy_arguments import PrivacyArguments
    from sfumato.learning.adapters.trainer import PrivateTrainer, PrivateTrainerMixin
    from sfumato.learning.adapters.training_arguments import check_arguments
    from sfumato.learning.training.setup.options import SamplingOptions
    from tests.learning.adapters.tiny import arguments, bert, examples, privacy, trainer


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"max_grad_norm": 3.0}, "max_grad_norm must be the privacy's"),
        ({"auto_find_batch_size": True}, "auto_find_batch_size must be off"),
        ({"include_num_input_tokens_seen": True}, "include_num_input_tokens_seen must be 'no'"),
        ({"use_liger_kernel": True}, "use_liger_kernel must be off"),
        ({"neftune_noise_alpha": 5.0}, "neftune_noise_alpha must be left out"),
    ],
)
def test_arguments_that_would_break_it(changes: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=told):
        trainer(tmp_path, arg=changes)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fp16", True),
        ("fsdp", "full_shard"),
        ("deepspeed", {"stage": 2}),
        ("torch_compile", True),
        ("activation_checkpointing", True),
        ("gradient_checkpointing", True),
        ("group_by_length", True),
        ("train_sampling_strategy", "group_by_length"),
        ("train_sampling_strategy", "sequential"),
        ("include_num_input_tokens_seen", "non_padding"),
        ("optim", "galore_adamw_layerwise"),
        ("optim", "adalomo"),
    ],
)
def test_arguments_that_not_every_version_and_machine_has(name: str, value: Any, tmp_path: Path) -> None:
    given = arguments(tmp_path)
    setattr(given, name, value)
    with pytest.raises(ParameterError, match=f"{name} must "):
        check_arguments(given, privacy())


@pytest.mark.parametrize("name", ["n_gpu", "world_size"])
def test_copies_of_the_module_are_refused(name: str, tmp_path: Path) -> None:
    class Several(type(arguments(tmp_path))):  # type: ignore[misc]
        pass

    setattr(Several, name, property(lambda self: 2))
    given = arguments(tmp_path)
    given.__class__ = Several
    with pytest.raises(ParameterError, match=f"{name} must be"):
        check_arguments(given, privacy())


@pytest.mark.parametrize("norm", [0.0, 1.0, 0.5])
def test_norms_that_clip_nothing_twice_are_taken(norm: float, tmp_path: Path) -> None:
    made = trainer(tmp_path, arg={"max_grad_norm": norm})
    assert made.args.max_grad_norm == 0


def test_words_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="args must be a TrainingArguments"):
        PrivateTrainer(bert(), None, privacy=privacy())
    with pytest.raises(ParameterError, match="privacy must be a PrivacyArguments"):
        trainer(tmp_path, privacy={"noise_multiplier": 1.0})


if run_time(__name__):

    class Rows(IterableDataset[Any]):
        def __iter__(self) -> Any:
            return iter(examples())


def test_rows_that_cannot_be_drawn(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="train_dataset must have a length and __getitem__"):
        trainer(tmp_path, train_dataset=Rows(), arg={"max_steps": 3}).train()
    with pytest.raises(ParameterError, match="train_dataset must have a length and __getitem__"):
        trainer(tmp_path, train_dataset=None).train()


if run_time(__name__):

    class OwnSampler(Trainer):  # type: ignore[misc]
        def _get_train_sampler(self, *_: Any) -> Any:
            return SequentialSampler(self.train_dataset)

    class OwnLoader(Trainer):  # type: ignore[misc]
        def get_train_dataloader(self) -> Any:
            return super().get_train_dataloader()

    class OwnLoss(PrivateTrainer):
        def compute_loss(self, *args: Any, **options: Any) -> Any:
            return super().compute_loss(*args, **options)


@cases(("base", "name"), lambda: [(OwnSampler, "_get_train_sampler"), (OwnLoader, "get_train_dataloader")])
def test_bases_that_draw_batches_of_their_own(base: Any, name: str, tmp_path: Path) -> None:
    kind = type("Mine", (PrivateTrainerMixin, base), {})
    with pytest.raises(
        ParameterError, match=f"trainer must not override {name}, but {base.__name__} overrides it"
    ):
        trainer(tmp_path, kind=kind)


def test_classes_that_have_a_loss_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="not override compute_loss, but OwnLoss overrides it"):
        trainer(tmp_path, kind=OwnLoss)


def test_a_base_that_adds_something_else_is_taken(tmp_path: Path) -> None:
    class Counting(Trainer):  # type: ignore[misc]
        evaluated = 0

        def evaluate(self, *args: Any, **options: Any) -> Any:
            self.evaluated += 1
            return super().evaluate(*args, **options)

    kind = type("Mine", (PrivateTrainerMixin, Counting), {})
    made = trainer(
        tmp_path, kind=kind, arg={"max_steps": 2, "eval_strategy": "epoch"}, eval_dataset=examples()
    )
    made.train()
    assert made.evaluated == 1
    assert made.get_epsilon() > 0


def test_an_optimizer_of_other_parameters_is_refused(tmp_path: Path) -> None:
    stranger = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    with pytest.raises(ParameterError, match="optimizer must hold the module's parameters only"):
        trainer(tmp_path, optimizers=(stranger, None)).train()


def test_rows_of_several_examples_are_refused(tmp_path: Path) -> None:
    def packed(rows: list[Any]) -> dict[str, torch.Tensor]:
        batch = default_data_collator(rows)
        if len(rows) < 2:
            return dict(batch)
        joined = {name: tensor.reshape(1, -1) for name, tensor in batch.items()}
        return joined | {"labels": batch["labels"][:1]}

    made = trainer(tmp_path, data_collator=packed)
    with pytest.raises(ParameterError, match="data_collator must make one row of each example"):
        made.train()
    assert made.get_epsilon() == 0


def test_a_search_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="tune charges for a search"):
        trainer(tmp_path).train(trial={"learning_rate": 0.1})


@cases(
    ("changes", "told"),
    [
        ({}, "target_epsilon must be given, or noise_multiplier, but neither was given"),
        ({"target_epsilon": 1.0, "noise_multiplier": 1.0}, "but both were given"),
        ({"noise_multiplier": 1.0, "delta": 0.0}, "delta must"),
        ({"noise_multiplier": 1.0, "max_grad_norm": 0.0}, "max_grad_norm must be positive"),
        ({"noise_multiplier": 1.0, "options": {"steps": 3}}, "options must be among"),
        (
            {"noise_multiplier": 1.0, "options": {"record": 3}},
            "record must be a RecordOptions, got a value of type int",
        ),
    ],
)
def test_privacy_arguments_that_say_nothing_or_two_things(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        PrivacyArguments(**({"delta": 1e-5} | changes))


def test_what_the_loop_says_is_left_to_it() -> None:
    with pytest.raises(ParameterError, match="sampling must leave steps to the loop, got 3"):
        PrivacyArguments(noise_multiplier=1.0, delta=1e-5, options={"sampling": SamplingOptions(steps=3)})
