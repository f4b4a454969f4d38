"""Checkpoints around trained layers: the same gradients, or a clear word; never a layer without its clip."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.errors import UnfitModule
from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import Tensor, nn
    from torch.utils.checkpoint import checkpoint

    from sfumato.learning.checks.self_test import self_test
    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.engine.engine import Engine, Mode
    from tests.learning.engine.reference import difference, square

    class Blocks(nn.Module):
        """Layers of one shape, so that a tensor of the wrong one would not be noticed."""

        def __init__(
            self, *, reentrant: bool = False, behind: str = "", inner: nn.Module | None = None
        ) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.enter, self.leave = nn.Linear(4, 6), nn.Linear(6, 6)
            usual = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.LayerNorm(6), nn.Linear(6, 6), nn.ReLU())
            self.inner = inner or usual
            self.made = nn.utils.parametrizations.weight_norm(nn.Linear(6, 6))
            self.reentrant, self.behind = reentrant, behind

        def forward(self, x: Tensor) -> Tensor:
            h: Any = self.enter(x).tanh()
            for part in (self.inner, self.made, self.inner):
                h = checkpoint(part, h, use_reentrant=self.reentrant)
            if self.behind:
                h.add_(1)
            return self.leave(h)  # type: ignore[no-any-return]


@pytest.mark.parametrize("options", [{}, {"chunk": 2}, {"mode": "microbatch"}], ids=str)
def test_gradients_are_those_without_a_checkpoint(options: dict[str, Any]) -> None:
    error, engine = difference(Blocks(), torch.randn(5, 4), **options)
    assert error < 1e-5
    assert ("checkpoints are left out" in engine.explain()) == ("mode" not in options)


def test_what_is_drawn_inside_is_drawn_once() -> None:
    module = Blocks(inner=nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5)))
    found = []
    for checkpointed in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not checkpointed:
                patch.setattr(
                    "tests.learning.engine.trace.test_activation_checkpointing.checkpoint",
                    lambda f, x, **_: f(x),
                )
            engine = Engine(module, Flat(clip_norm=0.1))
            engine.attach()
            torch.manual_seed(3)
            square(module(torch.ones(5, 4))).mean().backward()
            found.append(engine.clipped_sums())
            engine.detach()
    torch.testing.assert_close(found[0].gradients, found[1].gradients)


def test_a_change_in_place_behind_it_is_an_error_and_not_a_wrong_gradient() -> None:
    module = Blocks(behind="add")
    engine = Engine(module, Flat(clip_norm=0.1))
    engine.attach()
    with pytest.raises(UnfitModule, match="must not be changed in place"):
        square(module(torch.randn(3, 4))).mean().backward()
    engine.detach()
    assert difference(module, torch.randn(3, 4), mode="microbatch")[0] < 1e-5


if run_time(__name__):

    class Doubled(torch.autograd.Function):
        """Keeps a tensor that no torch function has shown."""

        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * gradients[0]

    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 6)

        def forward(self, x: Tensor) -> Tensor:
            return Doubled.apply(self.layer(x))  # type: ignore[no-any-return,no-untyped-call]


def test_functions_of_the_users_own_beside_it_take_the_slow_way() -> None:
    error, engine = difference(Blocks(inner=Own()), torch.randn(3, 4))
    assert error < 1e-5
    assert "microbatches of one: it has autograd functions" in engine.explain()


@pytest.mark.parametrize("mode", ["auto", "vmap", "microbatch"])
def test_a_reentrant_one_is_refused_in_the_forward(mode: Mode) -> None:
    module = Blocks(reentrant=True)
    engine = Engine(module, Flat(clip_norm=0.1), mode=mode)
    engine.attach()
    with pytest.raises(UnfitModule, match="use_reentrant=False around parameters"):
        module(torch.randn(3, 4))


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")  # torch's own, without gradients
def test_the_self_test_takes_the_one_and_refuses_the_other() -> None:
    batch = torch.zeros(4, 4)
    found = self_test(Blocks(), None, batch, Flat(clip_norm=1.0))
    assert found.passed, str(found)
    with pytest.raises(UnfitModule, match="checkpoint must have use_reentrant=False, got True"):
        self_test(Blocks(reentrant=True), None, batch, Flat(clip_norm=1.0))


def test_a_reentrant_one_around_frozen_layers_is_taken() -> None:
    found, batch = [], torch.randn(3, 4)
    for reentrant in (True, False):
        module = Blocks(reentrant=reentrant)
        for part in (module.inner, module.made):
            part.requires_grad_(False)
        engine = Engine(module, Flat(clip_norm=0.1))
        engine.attach()
        square(module(batch)).mean().backward()
        found.append(engine.clipped_sums())
        assert "enter.weight: linear" in engine.explain()
        engine.detach()
    torch.testing.assert_close(found[0].gradients, found[1].gradients)
    assert difference(module, batch)[0] < 1e-5


def test_what_vmap_cannot_do_is_said_where_it_was_asked_for() -> None:
    engine = Engine(Blocks(), Flat(clip_norm=0.1), mode="vmap")
    engine.attach()
    with pytest.raises(UnfitModule, match=r"must run under torch\.func\.vmap"):
        engine.module(torch.randn(3, 4))
