"""The loss of an example is the model's own on that example alone."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.errors import ParameterError
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from transformers import default_data_collator

    from sfumato.learning.adapters.example_losses import example_losses, known_loss
    from tests.learning.adapters.tiny import CLASSES, MODELS, bert, examples


@cases("name", lambda: list(MODELS))
def test_it_is_the_models_own_of_one(name: str) -> None:
    model = MODELS[name]().eval()
    rows = examples(name, 5)
    batch = default_data_collator(rows)
    labels = batch.pop("labels")
    with torch.no_grad():
        found = example_losses(model(**batch).logits, labels, known_loss(model))
        own = torch.stack([model(**default_data_collator([row])).loss for row in rows])
    torch.testing.assert_close(found, own)
    assert found.shape == (5,)


@cases(
    ("changes", "labels"),
    lambda: [
        ({"num_labels": 1}, torch.randn(5)),
        ({"num_labels": 2, "problem_type": "regression"}, torch.randn(5, 2)),
        ({"problem_type": "multi_label_classification"}, (torch.randn(5, CLASSES) > 0).float()),
        ({}, (torch.randn(5, CLASSES) > 0).float()),
    ],
)
def test_so_it_is_of_numbers_and_several_labels(changes: dict[str, Any], labels: torch.Tensor) -> None:
    model: Any = bert(**changes).eval()
    batch = default_data_collator(examples(count=5))
    batch.pop("labels")
    with torch.no_grad():
        kind, given = model.config.problem_type, model(**batch).logits
        found = example_losses(given, labels, known_loss(model), problem_type=kind)
        parts = [{name: tensor[i : i + 1] for name, tensor in batch.items()} for i in range(5)]
        own = torch.stack([model(**part, labels=labels[i : i + 1]).loss for i, part in enumerate(parts)])
    torch.testing.assert_close(found, own)


@pytest.mark.parametrize("name", ["tokens", "masked", "gpt2"])
def test_others_labels_weigh_nothing(name: str) -> None:
    """The models' own loss of a batch does not pass: it divides by the labels of all."""
    model = MODELS[name]().eval()
    batch = default_data_collator(examples(name, 4))
    labels = batch.pop("labels")
    fewer = labels.clone()
    fewer[0, 1:] = -100
    with torch.no_grad():
        logits = model(**batch).logits
        one, other = (example_losses(logits, given, known_loss(model)) for given in (labels, fewer))
        means = [
            model(**batch, labels=given).loss * 4 - losses[0]
            for given, losses in ((labels, one), (fewer, other))
        ]
    assert torch.equal(one[1:], other[1:])
    assert not torch.allclose(means[0], means[1])


def test_label_smoothing_is_torchs() -> None:
    logits, labels = torch.randn(4, CLASSES), torch.tensor([0, 1, 2, 1])
    found = example_losses(logits, labels, "ForSequenceClassification", label_smoothing=0.1)
    plain = torch.log_softmax(logits, 1)
    expected = -0.9 * plain[range(4), labels] - 0.1 * plain.mean(1)
    torch.testing.assert_close(found, expected)


def test_labels_of_another_length_are_refused() -> None:
    with pytest.raises(ParameterError, match="as many tokens as the predictions"):
        example_losses(torch.zeros(2, 3, 4), torch.zeros(2, 4, dtype=torch.long), "ForMaskedLM")


def test_models_whose_examples_may_meet_in_the_loss_are_refused() -> None:
    with pytest.raises(ParameterError, match="pass compute_loss_func="):
        known_loss(torch.nn.Linear(2, 2))
