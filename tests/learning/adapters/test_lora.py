"""Low-rank adapters of peft: they alone are trained, each example clipped by its own gradient."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.run_time import run_time

if run_time(__name__):
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import default_data_collator

    from sfumato.learning.adapters.example_losses import example_losses, known_loss
    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.engine.engine import Engine
    from tests.learning.adapters.tiny import MODELS, examples, trainer


pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")  # peft's own


def adapted(name: str) -> Any:
    targets = {"sequences": ["query", "value"], "gpt2": ["c_attn"], "llama": ["q_proj", "down_proj"]}[name]
    torch.manual_seed(0)
    # Neither factor is zero, or half of the gradients would be.
    config = LoraConfig(
        r=2, target_modules=targets, lora_dropout=0.0, init_lora_weights=False, fan_in_fan_out=name == "gpt2"
    )
    return get_peft_model(MODELS[name](), config)


def test_they_alone_are_trained(tmp_path: Path) -> None:
    for name in ("sequences", "gpt2"):
        model = adapted(name)
        before = {key: value.detach().clone() for key, value in model.named_parameters()}
        made = trainer(tmp_path, model, train_dataset=examples(name))
        made.train()
        changed = {key for key, value in model.named_parameters() if not torch.equal(value, before[key])}
        assert changed == {key for key in before if "lora_" in key}
        assert made.privacy_engine.run.cursor == 10


def test_clipped_sums_are_those_of_gradients_one_by_one() -> None:
    for name in ("sequences", "gpt2", "llama"):
        model = adapted(name).train()
        batch = default_data_collator(examples(name, 5))
        labels = batch.pop("labels")
        kind = known_loss(model)
        trained = {key: value for key, value in model.named_parameters() if value.requires_grad}

        def loss_of(parameters: Any, label: Any, *, model: Any = model, kind: str = kind, **row: Any) -> Any:
            inputs = {key: value[None] for key, value in row.items()}
            outputs = torch.func.functional_call(model, parameters, (), inputs)
            return example_losses(outputs.logits, label[None], kind)[0]

        rows = [{key: value[i] for key, value in batch.items()} for i in range(5)]
        held = {key: value.detach() for key, value in trained.items()}
        found = [torch.func.grad(loss_of)(held, labels[i], **row) for i, row in enumerate(rows)]
        norms = torch.stack([torch.cat([g.flatten() for g in one.values()]).norm() for one in found])
        clip = float(norms.median())
        factors = (clip / norms).clamp(max=1)

        engine = Engine(model, Flat(clip_norm=clip))
        engine.attach()
        example_losses(model(**batch).logits, labels, kind).mean().backward()
        sums = engine.clipped_sums()
        torch.testing.assert_close(sums.norms[0].float(), norms)
        assert sums.gradients.keys() == trained.keys()
        for key, total in sums.gradients.items():
            expected = sum(f * one[key] for f, one in zip(factors, found, strict=True))
            torch.testing.assert_close(total, expected, atol=1e-6, rtol=1e-4)
