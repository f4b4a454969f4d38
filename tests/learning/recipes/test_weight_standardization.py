"""Standardised weights: the formula, per-example gradients through it, and what is refused."""

from __future__ import annotations

import pytest

from sfumato.errors import UnfitModule
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import nn

    from sfumato.learning.checks.replacements import fix_module
    from sfumato.learning.checks.self_test import self_test
    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.engine.engine import Mode
    from sfumato.learning.recipes.weight_standardization import standardize_weights
    from tests.learning.engine.reference import difference


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.Flatten(),
        nn.Linear(16, 3),
    )  # fmt: skip


def test_each_output_has_weights_of_mean_0_and_length_1() -> None:
    plain = net()
    made = standardize_weights(plain)
    for place in (0, 3):
        before, after = plain[place].weight.flatten(1), made[place].weight.flatten(1)  # type: ignore[index]
        expected = before - before.mean(1, keepdim=True)
        expected = expected / (expected.square().sum(1, keepdim=True) + 1e-4).sqrt()
        torch.testing.assert_close(after, expected)
    assert torch.equal(plain[5].weight, made[5].weight)  # type: ignore[index]
    assert "0.parametrizations.weight.original" in made.state_dict()
    made[0].weight = torch.ones(8, 2, 3, 3)  # type: ignore[index]
    assert not made[0].weight.any()  # type: ignore[index]


@pytest.mark.parametrize("mode", ["auto", "microbatch"])
def test_per_example_gradients_go_through_it(mode: Mode) -> None:
    made = standardize_weights(fix_module(net()), layers=(nn.Conv2d, nn.Linear))
    error, engine = difference(made, torch.randn(5, 2, 6, 6), mode=mode)
    assert error < 1e-5
    assert ("conv2d" in engine.explain()) == (mode == "auto")


def test_the_self_test_passes() -> None:
    made = standardize_weights(fix_module(net()))
    assert self_test(made, None, torch.zeros(4, 2, 6, 6), Flat(clip_norm=1.0)).passed


def test_what_would_be_standardised_in_one_place_only_is_refused() -> None:
    with pytest.raises(UnfitModule, match="got none of Conv1d, Conv2d"):
        standardize_weights(nn.Linear(2, 2))
    with pytest.raises(UnfitModule, match="made of others"):
        standardize_weights(standardize_weights(net()))
    tied = nn.Sequential(nn.Conv1d(2, 2, 1), nn.Conv1d(2, 2, 1))
    tied[1].weight = tied[0].weight
    with pytest.raises(UnfitModule, match="shared"):
        standardize_weights(tied)
    one = nn.Conv1d(2, 2, 1)
    twice = standardize_weights(nn.Sequential(one, nn.ReLU(), one))
    assert twice[0] is twice[2]  # type: ignore[index]
