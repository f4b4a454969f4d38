"""How long a run is, said in steps; and batches that the engine takes a few examples at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sfumato.errors import ParameterError, RunExhausted
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch.utils.data import DataLoader

    from sfumato.learning.training.privacy_engine import PrivacyEngine
    from tests.learning.training.conftest import Made, grouped, make_data, make_module


def with_epsilon(**options: Any) -> PrivacyEngine:
    module, engine = make_module(), PrivacyEngine()
    engine.make_private_with_epsilon(
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
        data_loader=DataLoader(make_data(), batch_size=10),
        target_epsilon=2.0,
        target_delta=1e-3,
        max_grad_norm=1.0,
        **grouped({"self_test": False, **options}),
    )
    return engine


def test_noise_is_found_for_steps_as_for_epochs() -> None:
    by_steps, by_epochs = with_epsilon(steps=8), with_epsilon(epochs=2)
    assert by_steps.run.noise_multiplier == by_epochs.run.noise_multiplier
    assert 1.99 < by_steps.run.loss_of(8).epsilon(1e-3) <= 2.0


def test_a_run_with_epsilon_is_of_so_many_steps() -> None:
    loader = with_epsilon(steps=5).parts.loader
    assert len(list(loader)) + len(list(loader)) == 5
    with pytest.raises(RunExhausted):
        list(loader)


@pytest.mark.parametrize("options", [{}, {"epochs": 1, "steps": 4}, {"steps": 0}])
def test_one_length_must_be_given(options: dict[str, int]) -> None:
    with pytest.raises(ParameterError):
        with_epsilon(**options)


def test_examples_a_few_at_a_time_train_alike(make: Callable[..., Made]) -> None:
    few, whole = make(chunk=3), make()
    assert few.epoch() == whole.epoch() == 4
    for a, b in zip(few.weights, whole.weights, strict=True):
        torch.testing.assert_close(a, b)
