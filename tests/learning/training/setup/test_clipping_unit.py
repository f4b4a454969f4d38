"""A sampler whose loss supposes clipping by user is none for an engine that clips each example."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.errors import ParameterError
from sfumato.learning.sampling.users import UserSampler
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    from sfumato.learning.training.privacy_engine import PrivacyEngine
    from sfumato.learning.training.setup.options import SamplingOptions


def _made(**parameters: Any) -> Any:
    def sampler(*, steps: int, seed: Any, **_: Any) -> UserSampler:
        ids = [i % 5 for i in range(20)]
        return UserSampler(user_ids=ids, sampling_probability=0.5, steps=steps, seed=seed, **parameters)

    module = nn.Linear(2, 1)
    return PrivacyEngine().make_private(
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
        data_loader=DataLoader(TensorDataset(torch.zeros(20, 2), torch.zeros(20, 1)), batch_size=4),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        sampling=SamplingOptions(sampler=sampler, steps=3),
        noise_generator=1,
    )


def test_users_must_not_be_priced_where_examples_are_clipped() -> None:
    with pytest.raises(ParameterError, match="sampler must be priced for clipping each example"):
        _made()


def test_users_with_few_examples_are_taken() -> None:
    assert len(_made(clip="example", max_examples=2)) == 3
