"""A loss by itself: what joins examples is refused, what adds them up is taken."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.errors import ParameterError, UnfitModule
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import torch
    import torch.nn.functional as F  # noqa: N812
    from torch import Tensor, nn

    from sfumato.learning.checks.criterion import check_loss
    from tests.learning.training.conftest import Made

    LABELS = torch.zeros(4, 3), torch.zeros(4, dtype=torch.int64)
    NUMBERS = torch.zeros(4, 1), torch.zeros(4, 1)

    class Contrast(nn.Module):
        def forward(self, h: Tensor, y: Tensor) -> Tensor:
            return F.cross_entropy(h @ h.T, torch.arange(len(h)))

    class Centred(nn.Module):
        def forward(self, h: Tensor, y: Tensor) -> Tensor:
            return (h - y - (h - y).mean()).square().mean()

    class Padded(nn.Module):
        def forward(self, h: Tensor, y: Tensor) -> Tensor:
            return F.cross_entropy(h, y, ignore_index=-1)

    class Each(nn.Module):
        def forward(self, h: Tensor, y: Tensor) -> Tensor:
            return F.mse_loss(h, y, reduction="none").sum(1)


@cases(
    ("criterion", "batch", "reduction"),
    lambda: [
        (Contrast(), LABELS, "mean"),
        (Centred(), NUMBERS, "mean"),
        (Padded(), LABELS, "mean"),
        (nn.MSELoss(reduction="sum"), NUMBERS, "mean"),
        (nn.MSELoss(), NUMBERS, "sum"),
        (nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 9.0])), LABELS, "mean"),
    ],
)
def test_a_loss_of_examples_together_is_refused(criterion: nn.Module, batch: Any, reduction: Any) -> None:
    with pytest.raises(UnfitModule, match=f"criterion must be a {reduction} over examples"):
        check_loss(criterion, batch, loss_reduction=reduction)


@cases(
    ("criterion", "batch", "reduction"),
    lambda: [
        (nn.MSELoss(), NUMBERS, "mean"),
        (nn.MSELoss(reduction="sum"), NUMBERS, "sum"),
        (nn.CrossEntropyLoss(), LABELS, "mean"),
        (nn.CrossEntropyLoss(label_smoothing=0.1), LABELS, "mean"),
        (nn.CrossEntropyLoss(ignore_index=-1, reduction="sum"), LABELS, "sum"),
        (nn.BCEWithLogitsLoss(), NUMBERS, "mean"),
        (nn.HuberLoss(), NUMBERS, "mean"),
        (nn.CrossEntropyLoss(), (LABELS[0].bfloat16(), LABELS[1]), "mean"),
        (Each(), NUMBERS, "mean"),
    ],
)
def test_a_loss_of_each_example_is_taken(criterion: nn.Module, batch: Any, reduction: Any) -> None:
    before = torch.get_rng_state()
    check_loss(criterion, batch, loss_reduction=reduction)
    assert torch.equal(before, torch.get_rng_state())


@cases(
    "criterion", lambda: [nn.CrossEntropyLoss(ignore_index=0), nn.NLLLoss(weight=torch.tensor([1.0, 2.0]))]
)
def test_a_mean_over_some_is_refused_before_a_run(criterion: nn.Module) -> None:
    with pytest.raises(ParameterError, match="criterion must divide by the number of examples"):
        Made(criterion=criterion)


def step(made: Made, criterion: nn.Module) -> None:
    x, y = next(iter(made.loader))
    made.optimizer.zero_grad()
    criterion(made.module(x), target=y) if isinstance(criterion, nn.MSELoss) else criterion(made.module(x), y)


def test_a_runs_criterion_is_tested_at_its_first_call() -> None:
    criterion = Centred()
    made = Made(criterion=criterion, self_test=True)
    for _ in range(2):  # as often as it is tried
        with pytest.raises(UnfitModule, match="criterion must be a mean over examples"):
            step(made, criterion)
    fair = nn.MSELoss()
    made = Made(criterion=fair, self_test=True)
    step(made, fair)
    assert not fair._forward_pre_hooks


def test_autocast_makes_no_loss_another() -> None:
    class Projected(nn.Module):
        def forward(self, h: Tensor, y: Tensor) -> Tensor:
            return (h @ torch.linspace(-3, 3, 3)[:, None]).exp().mean()

    with torch.autocast("cpu", dtype=torch.bfloat16):
        check_loss(Projected(), LABELS, loss_reduction="mean")


def test_a_loss_that_draws_is_told_not_to_have_been_tested() -> None:
    class Drawing(nn.Module):
        def forward(self, h: Tensor, y: Tensor) -> Tensor:
            return F.mse_loss(h + torch.randn_like(h), y)

    with pytest.warns(UserWarning, match="it draws random numbers"):
        check_loss(Drawing(), NUMBERS, loss_reduction="mean")


def test_random_inputs_that_a_loss_does_not_take_are_told() -> None:
    class Picky(nn.Module):
        def forward(self, h: Tensor, y: Tensor) -> Tensor:
            if len(h) == 1:
                raise RuntimeError(f"no loss of {float(y)}")
            return F.mse_loss(h, y)

    criterion = Picky()
    made = Made(criterion=criterion, self_test=True)
    with pytest.warns(
        UserWarning, match="criterion was not tested: random inputs raise RuntimeError"
    ) as told:
        step(made, criterion)
    assert "no loss of" not in str(told[0].message)
