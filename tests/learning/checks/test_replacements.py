"""Layers that mix examples are replaced, with what they have learned; what cannot be is named."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.errors import UnfitModule
from tests.cases import cases, named
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import Tensor, nn

    from sfumato.learning.checks.leaks import leak_probe
    from sfumato.learning.checks.replacements import fix_module
    from sfumato.learning.checks.validator import ModuleValidator

    NORMS: dict[str, tuple[nn.Module, tuple[int, ...], int]] = {
        "1d": (nn.BatchNorm1d(64), (64,), 4),
        "1d, narrow": (nn.BatchNorm1d(12), (12,), 1),
        "1d, with positions": (nn.BatchNorm1d(64), (64, 5), 4),
        "2d": (nn.BatchNorm2d(64), (64, 3, 3), 16),
        "2d, odd": (nn.BatchNorm2d(7), (7, 3, 3), 1),
        "2d, plain": (nn.BatchNorm2d(8, affine=False, eps=0.1), (8, 3, 3), 2),
        "2d, wide": (nn.BatchNorm2d(512), (512, 2, 2), 32),
        "3d": (nn.BatchNorm3d(16), (16, 2, 2, 2), 4),
        "synchronised": (nn.SyncBatchNorm(8), (8, 3, 3), 2),
    }


@cases(("norm", "shape", "groups"), lambda: named(NORMS))
def test_batch_norms_become_group_norms(norm: Any, shape: tuple[int, ...], groups: int) -> None:
    if norm.affine:
        nn.init.normal_(norm.weight)
        norm.bias.requires_grad_(requires_grad=False)
    model = nn.Sequential(nn.Identity(), norm).eval()
    fixed: Any = fix_module(model)
    assert isinstance(fixed[1], nn.GroupNorm)
    assert (fixed[1].num_groups, fixed[1].eps, fixed[1].affine) == (groups, norm.eps, norm.affine)
    assert not fixed[1].training
    if norm.affine:
        assert torch.equal(fixed[1].weight, norm.weight)
        assert fixed[1].weight is not norm.weight
        assert not fixed[1].bias.requires_grad
    x = torch.randn(3, *shape, generator=torch.Generator().manual_seed(0))
    assert bool((fixed(x).std(0) > 0).any())
    assert isinstance(model[1], type(norm))
    assert leak_probe(fixed, x).passed


@cases("kind", lambda: [nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d])
def test_running_statistics_of_instance_norms_are_dropped(kind: type[nn.InstanceNorm2d]) -> None:
    model = nn.Sequential(kind(3, affine=True, track_running_stats=True))
    fixed: Any = fix_module(model)
    assert type(fixed[0]) is kind
    assert fixed[0].running_mean is None
    assert torch.equal(fixed[0].weight, model[0].weight)  # type: ignore[arg-type]
    assert fix_module(nn.Sequential(kind(3)))._modules.keys() == {"0"}


def test_the_module_itself_may_be_replaced() -> None:
    assert isinstance(fix_module(nn.BatchNorm2d(8).to(torch.float64)), nn.GroupNorm)
    assert next(fix_module(nn.BatchNorm2d(8).to(torch.float64)).parameters()).dtype == torch.float64


if run_time(__name__):

    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = self.second = nn.BatchNorm1d(32)
            self.tied = nn.BatchNorm1d(32)
            self.tied.weight = self.first.weight

        def forward(self, x: Tensor) -> Any:
            return self.tied(self.second(self.first(x)))


def test_what_is_shared_stays_shared() -> None:
    fixed: Any = fix_module(Shared())
    assert fixed.first is fixed.second
    assert isinstance(fixed.second, nn.GroupNorm)
    assert fixed.tied.weight is fixed.first.weight
    assert set(dict(fixed.named_parameters())) == set(dict(Shared().named_parameters()))


if run_time(__name__):

    class Own(nn.BatchNorm2d):
        pass


def hooked() -> nn.Module:
    norm = nn.BatchNorm2d(4)
    norm.register_forward_hook(lambda *_: None)
    return norm


@cases(
    ("norm", "told"),
    lambda: [
        (Own(4), r"1 \(Own\): replace it by hand: it is a class of its own"),
        (nn.LazyBatchNorm2d(), r"1 \(LazyBatchNorm2d\): run the module once"),
        (hooked(), "hooks are on it"),
        (nn.BatchNorm1d(1), "one number has no group"),
    ],
)
def test_what_cannot_be_replaced_is_named(norm: nn.Module, told: str) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), norm)
    with pytest.raises(UnfitModule, match=told):
        fix_module(model)
    with pytest.raises(UnfitModule, match=told):
        ModuleValidator.fix(model)
    assert not ModuleValidator.is_valid(model)


def test_the_validator_has_the_names_of_opacus() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.InstanceNorm2d(4, track_running_stats=True)
    )
    errors = ModuleValidator.validate(model)
    assert [type(error) for error in errors] == [UnfitModule] * 2
    assert "1 (BatchNorm2d), which normalises over the batch; call fix_module" in str(errors[0])
    with pytest.raises(UnfitModule, match="InstanceNorm2d"):
        ModuleValidator.validate(model, strict=True)
    fixed = ModuleValidator.fix_and_validate(model)
    assert ModuleValidator.is_valid(fixed)
    assert ModuleValidator.validate(fixed, strict=True) == []
    assert ModuleValidator.is_valid(nn.LSTM(3, 4))


def test_what_cannot_be_trained_is_invalid() -> None:
    assert "got a lazy one" in str(ModuleValidator.validate(nn.LazyLinear(3))[0])
    with pytest.raises(UnfitModule, match="must have a parameter that requires a gradient, got none"):
        ModuleValidator.validate(nn.ReLU(), strict=True)
    frozen = nn.Linear(2, 2).requires_grad_(requires_grad=False)
    with pytest.raises(UnfitModule, match="unfreeze one"):
        ModuleValidator.fix_and_validate(frozen)
