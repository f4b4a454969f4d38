"""Rows that are views of one example: averaged before the norm, so that no example passes the bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sfumato.errors import ParameterError, UnfitModule
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import torch
    import torch.nn.functional as F  # noqa: N812
    from torch import Tensor, nn

    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.clipping.per_layer import PerLayer
    from sfumato.learning.engine.clipped_sums import ClippedSums
    from sfumato.learning.engine.engine import Engine, Reduction
    from sfumato.learning.engine.functional import clipped_grad
    from tests.learning.engine.reference import clipped, per_example, square


CLOSE = 3e-6
VIEWS, EXAMPLES = 3, 4


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))


if run_time(__name__):

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.wide = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 4, 3, groups=2, dilation=2)
            self.norm, self.head = nn.GroupNorm(2, 4), nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.wide(self.norm(self.conv(x)).relu()).mean((2, 3)))  # type: ignore[no-any-return]

    class Tied(nn.Module):
        """A table that is also a head, a layer that runs twice, a bare parameter, and a made one."""

        def __init__(self) -> None:
            super().__init__()
            self.table, self.twice = nn.Embedding(11, 6), nn.Linear(6, 6)
            self.norm, self.made = nn.LayerNorm(6), nn.utils.parametrizations.weight_norm(nn.Linear(6, 6))
            self.curve = nn.Parameter(torch.randn(6))

        def forward(self, x: Tensor) -> Tensor:
            h = self.made(self.norm(self.twice(self.twice(self.table(x)).tanh())))
            h = torch.where(h > 0, h, h * torch.exp(self.curve))
            return F.linear(h.mean(1), self.table.weight)

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.look = (
                nn.GRU(4, 6, batch_first=True),
                nn.MultiheadAttention(6, 2, batch_first=True),
            )

        def forward(self, x: Tensor) -> Tensor:
            h = self.cell(x)[0]
            return self.look(h, h, h, need_weights=False)[0].mean(1)  # type: ignore[no-any-return]


def rows(kind: str, count: int = EXAMPLES * VIEWS) -> Tensor:
    if kind == "tied":
        return torch.randint(11, (count, 5))
    return torch.randn(count, *{"mlp": (5,), "net": (2, 7, 7), "recurrent": (3, 4)}[kind])


if run_time(__name__):
    KINDS: dict[str, Callable[[], nn.Module]] = {"mlp": mlp, "net": Net, "tied": Tied, "recurrent": Recurrent}


def of_examples(module: nn.Module, batch: Tensor) -> dict[str, Tensor]:
    """Return the mean over each example's views of gradients taken one row at a time."""
    alone = per_example(module, batch, square)
    return {name: g.unflatten(0, (-1, VIEWS)).mean(1) for name, g in alone.items()}


def run(module: nn.Module, batch: Tensor, reduction: Reduction = "mean", **options: Any) -> ClippedSums:
    clipping = options.pop("clipping", None) or Flat(clip_norm=0.05)
    engine = Engine(module, clipping, views=VIEWS, loss_reduction=reduction, **options)
    engine.attach()
    try:
        each = square(module(batch))
        loss = each.mean() if reduction == "mean" else each.sum()
        (loss * options.get("loss_scale", 1.0)).backward()
        return engine.clipped_sums()
    finally:
        engine.detach()


OPTIONS: list[dict[str, Any]] = [
    {},
    {"memory": 64},
    {"chunk": 3},
    {"mode": "microbatch"},
    {"reduction": "sum"},
    {"loss_scale": 2.0**12},
]


@cases("options", OPTIONS, ids=str)
@cases("kind", lambda: list(KINDS))
def test_the_mean_over_views_is_what_is_clipped(kind: str, options: dict[str, Any]) -> None:
    module, batch = KINDS[kind](), rows(kind)
    own = of_examples(module, batch)
    clipping = PerLayer.of(list(own), clip_norm=0.05) if kind == "net" else Flat(clip_norm=0.05)
    sums, norms = clipped(own, clipping)
    found = run(module, batch, clipping=clipping, **options)
    assert found.examples == EXAMPLES
    assert found.norms.shape == norms.shape
    torch.testing.assert_close(found.norms.double(), norms, rtol=1e-4, atol=1e-7)
    for name, total in sums.items():
        assert (found.gradients[name].double() - total).norm() <= CLOSE * EXAMPLES * 0.05


def test_whole_module_vmap_agrees() -> None:
    module, batch = mlp(), rows("mlp")
    expected = run(module, batch)
    for memory in (None, 8):
        found = run(module, batch, mode="vmap", memory=memory)
        torch.testing.assert_close(found.gradients, expected.gradients)
        torch.testing.assert_close(found.norms, expected.norms)


def test_the_functional_door_agrees() -> None:
    module, batch = mlp(), rows("mlp")

    def loss(parameters: dict[str, Tensor], views: Tensor) -> Tensor:
        return square(torch.func.functional_call(module, parameters, (views,))).mean()

    grad = clipped_grad(loss, clip_norm=0.05)
    found = grad(dict(module.named_parameters()), batch.unflatten(0, (EXAMPLES, VIEWS)))
    torch.testing.assert_close(found.gradients, dict(run(module, batch).gradients))


@cases("mode", ["auto", "microbatch"])
@cases("kind", lambda: list(KINDS))
def test_an_example_moves_the_sum_by_the_clip_norm_at_most(kind: str, mode: str) -> None:
    module, batch, bound = KINDS[kind](), rows(kind), 0.01
    whole = run(module, batch, mode=mode, clipping=Flat(clip_norm=bound))
    moved = []
    for place in range(EXAMPLES):
        rest = torch.cat([batch[: place * VIEWS], batch[(place + 1) * VIEWS :]])
        without = run(module, rest, mode=mode, clipping=Flat(clip_norm=bound))
        difference = [whole.gradients[n] - without.gradients[n] for n in whole.gradients]
        moved.append(float(torch.cat([d.flatten().double() for d in difference]).norm()))
    assert max(moved) <= bound * (1 + 1e-4)
    assert max(moved) >= bound * 0.99  # the views count once, not three times


def test_views_that_cancel_out_leave_nothing() -> None:
    module = nn.Linear(5, 1, bias=False)
    engine = Engine(module, Flat(clip_norm=1.0), views=2)
    engine.attach()
    x = torch.randn(1, 5)
    (module(torch.cat([x, x])) * torch.tensor([[1e3], [-1e3]])).mean().backward()
    assert float(engine.clipped_sums().gradients["weight"].norm()) < 1e-3


def test_one_view_that_is_not_finite_leaves_its_example_out() -> None:
    module, batch = Net(), rows("net")
    expected = run(module, batch[VIEWS:])
    batch[1, 0, 0, 0] = torch.nan
    found = run(module, batch)
    assert found.examples == EXAMPLES
    torch.testing.assert_close(found.gradients, expected.gradients)


def test_physical_batches_add_up() -> None:
    module, batch = mlp(), rows("mlp")
    expected = run(module, batch)
    engine = Engine(module, Flat(clip_norm=0.05), views=VIEWS)
    engine.attach()
    for part in batch.split([VIEWS, 0, 3 * VIEWS]):
        square(module(part)).mean().backward()
    found = engine.clipped_sums()
    assert found.examples == EXAMPLES
    torch.testing.assert_close(found.gradients, expected.gradients)


def test_rows_of_half_an_example_are_refused() -> None:
    module = mlp()
    engine = Engine(module, Flat(clip_norm=1.0), views=VIEWS)
    engine.attach()
    with pytest.raises(UnfitModule, match="3 rows in a row for each example, got another"):
        module(torch.randn(7, 5))
    square(module(torch.zeros(0, 5))).mean().backward()
    assert engine.clipped_sums().examples == 0
    with pytest.raises(ParameterError, match="views must"):
        Engine(module, Flat(clip_norm=1.0), views=0)
    with pytest.raises(ParameterError, match="loss_scale must be a power of two"):
        Engine(module, Flat(clip_norm=1.0), loss_scale=1000.0)


@pytest.mark.parametrize("scale", [2.0**-63, 0.5, 2.0**41])
def test_a_scale_whose_squares_float32_does_not_hold_is_refused(scale: float) -> None:
    # With 2**-63 the square of 2**-13 was lost, and the gradient came through whole: 8 times the clip norm.
    with pytest.raises(ParameterError, match="loss_scale must be a power of two from 1 to"):
        Engine(mlp(), Flat(clip_norm=2.0**-16), loss_scale=scale)


@pytest.mark.parametrize("scale", [1.0, 2.0**40])
@pytest.mark.parametrize("norm", [2.0**-40, 2.0**10])
def test_the_widest_scales_clip_as_any(scale: float, norm: float) -> None:
    module = nn.Linear(1, 1, bias=False)
    engine = Engine(module, Flat(clip_norm=norm), loss_scale=scale)
    engine.attach()
    (module(torch.tensor([[1.0], [0.0], [0.0]])) * (8 * norm)).mean().mul(scale).backward()
    assert float(engine.clipped_sums().gradients["weight"].detach()) == pytest.approx(norm, rel=2.0**-12)
