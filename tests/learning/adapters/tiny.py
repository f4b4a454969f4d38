"""Tiny models, made here: nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertForTokenClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    TrainingArguments,
)

from sfumato.learning.adapters.privacy_arguments import PrivacyArguments
from sfumato.learning.adapters.trainer import PrivateTrainer
from sfumato.learning.training.setup.options import GradientOptions
from sfumato.ledger import Budget, Dataset, Ledger
from sfumato.privacy import Neighboring

WORDS, TOKENS, CLASSES, EXAMPLES = 30, 6, 3, 40


def bert(kind: Any = BertForSequenceClassification, *, dropout: float = 0.0, **changes: Any) -> nn.Module:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=WORDS,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=TOKENS,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        **({"num_labels": CLASSES} | changes),
    )
    model: nn.Module = kind(config)
    return model


def gpt2() -> nn.Module:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=WORDS,
        n_embd=8,
        n_layer=1,
        n_head=2,
        n_positions=TOKENS,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=1,
        eos_token_id=2,
        use_cache=False,
    )
    model: nn.Module = GPT2LMHeadModel(config)
    return model


def llama() -> nn.Module:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=WORDS,
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=TOKENS,
        use_cache=False,
    )
    model: nn.Module = LlamaForCausalLM(config)
    return model


MODELS: dict[str, Callable[[], nn.Module]] = {
    "sequences": bert,
    "tokens": lambda: bert(BertForTokenClassification),
    "masked": lambda: bert(BertForMaskedLM),
    "gpt2": gpt2,
    "llama": llama,
}


def examples(model: str = "sequences", count: int = EXAMPLES) -> list[dict[str, Any]]:
    """Rows of tokens, of which the last are padding in some, with labels for a model."""
    generator = torch.Generator().manual_seed(1)

    def drawn(most: int, *shape: int) -> torch.Tensor:
        return torch.randint(most, shape, generator=generator)

    rows = []
    for number in range(count):
        mask = (torch.arange(TOKENS) < TOKENS - number % 3).long()
        labels = drawn(CLASSES if model == "tokens" else WORDS, TOKENS).masked_fill(mask == 0, -100)
        row = {"input_ids": drawn(WORDS, TOKENS), "attention_mask": mask, "labels": labels}
        rows.append(row | ({"labels": drawn(CLASSES, 1)[0]} if model == "sequences" else {}))
    return rows


def arguments(folder: Path, **changes: Any) -> TrainingArguments:
    usual: dict[str, Any] = {
        "output_dir": str(folder),
        "num_train_epochs": 2,
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "learning_rate": 0.1,
        "logging_steps": 2,
        "save_strategy": "no",
        "report_to": "none",
        "use_cpu": True,
        "disable_tqdm": True,
    }
    return TrainingArguments(**(usual | changes))


def privacy(**changes: Any) -> PrivacyArguments:
    """A simulation, without the self-test, which takes most of the time."""
    without = GradientOptions(self_test=False)
    options = {"noise_generator": 7, "gradients": without} | changes.pop("options", {})
    usual: dict[str, Any] = {"noise_multiplier": 0.8, "delta": 1e-3, "max_grad_norm": 0.5, "options": options}
    return PrivacyArguments(**(usual | changes))


def sgd(model: nn.Module) -> tuple[torch.optim.Optimizer, Any]:
    """An optimizer, and a rate that falls by a tenth with each of its steps."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
    return optimizer, torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)


def trainer(
    folder: Path,
    model: nn.Module | None = None,
    *,
    arg: dict[str, Any] | None = None,
    kind: Any = PrivateTrainer,
    **changes: Any,
) -> Any:
    module = bert() if model is None else model
    usual: dict[str, Any] = {
        "train_dataset": examples(),
        "privacy": privacy(),
        "optimizers": sgd(module),
    }
    return kind(module, arguments(folder, **(arg or {})), **(usual | changes))


def weights(module: nn.Module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in module.parameters()]


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    """Whether all are equal, bit by bit."""
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def open_ledger(path: Path) -> Ledger:
    return Ledger.open(
        path,
        budget=Budget.approximate(epsilon=8.0, delta=1e-2),
        privacy_unit="row",
        neighboring=Neighboring.ZERO_OUT,
        dataset=Dataset(schema="text", fingerprint=lambda key: "0" * 64),
    )
