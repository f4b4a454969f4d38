"""An example whose terms are huge and cancel out must not round the others' gradients away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import torch
    import torch.nn.functional as F  # noqa: N812
    from torch import Tensor, nn

    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.engine.engine import Engine
    from sfumato.learning.engine.gradients.gathered_rows import GatheredRows
    from sfumato.learning.engine.gradients.memory_pool import MemoryPool
    from sfumato.learning.engine.gradients.outer_products import OuterProducts
    from sfumato.learning.engine.gradients.per_example import squares
    from sfumato.learning.engine.gradients.summation import _norms_of
    from tests.learning.engine.rules.test_rules import Body


HUGE = 1e14


def _tokens(m: Any, x: Tensor) -> Tensor:
    return F.linear(x, m.w).mean(1)


def _twice(m: Any, x: Tensor) -> Tensor:
    return F.linear(x[:, 0], m.w) + F.linear(x[:, 1], m.w)


def _generic(m: Any, x: Tensor) -> Tensor:
    return torch.einsum("btd,od->bto", x, m.w).sum(1)


def _made(m: Any, x: Tensor) -> Tensor:
    return F.linear(x[:, 0], 2 * m.w) + F.linear(x[:, 1], m.w + m.w)


def _maps(m: Any, x: Tensor) -> Tensor:
    return torch.conv2d(x.view(-1, 1, 8, 8), m.kernel).mean((2, 3))


def _looked_up(m: Any, x: Tensor) -> Tensor:
    return (F.embedding(torch.ones(len(x), 2, dtype=torch.long), m.w) * x[:, :2, :1]).sum(1)


def _tied(m: Any, x: Tensor) -> Tensor:
    """The same row of a table, looked up and multiplied with."""
    row = F.embedding(torch.zeros(len(x), 1, dtype=torch.long), m.w)[:, 0]
    return row * x[:, 0, :1] + F.linear(x[:, 1], m.w)[:, :1]


def _examples(count: int) -> Tensor:
    return torch.rand(count, 8, 8, generator=torch.Generator().manual_seed(1))


def _odd() -> Tensor:
    odd = torch.zeros(1, 8, 8)
    odd[0, 0], odd[0, 1] = HUGE, -HUGE
    return odd


def _odd_map() -> Tensor:
    odd = torch.zeros(1, 8, 8)
    odd[0, 3, 3], odd[0, 3, 4] = HUGE, -HUGE
    return odd


def _sums(forward: Callable[..., Tensor], x: Tensor, memory: int) -> Tensor:
    weights = {"w": torch.full((8, 8), 0.5)} if forward is not _maps else {"kernel": torch.ones(2, 1, 3, 3)}
    module = Body(forward, **weights)
    engine = Engine(module, Flat(clip_norm=1.0), loss_reduction="sum", memory=memory)
    engine.attach()
    module(x).sum().backward()
    (found,) = engine.clipped_sums().gradients.values()
    return found


@cases("memory", [2**26, 64])
@cases("forward", [_tokens, _twice, _generic, _made, _maps, _looked_up, _tied])
def test_a_huge_example_that_cancels_out_moves_the_sum_by_no_more_than_the_sensitivity(
    forward: Callable[..., Tensor], memory: int
) -> None:
    x = _examples(40)
    odd = _odd_map() if forward is _maps else _odd()
    without = _sums(forward, x, memory)
    with_it = _sums(forward, torch.cat([x[:20], odd, x[20:]]), memory)
    assert float((with_it - without).norm()) <= Flat(clip_norm=1.0).sensitivity + 1e-4


def test_a_weight_s_gradient_is_clipped_where_one_factor_s_square_is_too_small_for_floats() -> None:
    module = nn.Linear(1, 1000, bias=False)
    clipping = Flat(clip_norm=1e-3)
    engine = Engine(module, clipping, loss_reduction="sum")
    engine.attach()
    (module(torch.tensor([[1.5e19]])) * 1e-23).sum().backward()
    found = engine.clipped_sums()
    assert float(found.gradients["weight"].norm()) == pytest.approx(1e-3, rel=1e-4)
    assert float(found.norms) == pytest.approx(1.5e-4 * 1000**0.5, rel=1e-4)


@pytest.mark.parametrize("turned", [False, True])
def test_norms_from_inner_products_are_right_where_one_factor_s_square_is_too_small(*, turned: bool) -> None:
    large, small = torch.zeros(1, 2, 8), torch.zeros(1, 2, 8)
    for row in range(2):
        large[0, row, row], small[0, row, row] = 1e19, 4.4e-23
    sides = (small, large) if turned else (large, small)
    uses = OuterProducts(*sides, max_entries=0, pool=MemoryPool(0, 0))
    assert uses.squared_norms().item() == pytest.approx(2 * (1e19 * 4.4e-23) ** 2, rel=1e-3)


def test_what_cancels_out_in_part_keeps_its_gradient() -> None:
    """Between a lookup and a product, down to a thousandth: the cross terms alone would be off."""
    x = torch.zeros(1, 8, 8)
    x[0, 0], x[0, 1, 0] = 1000.0, 1.0
    module = Body(_tied, w=torch.full((8, 8), 0.5))
    engine = Engine(module, Flat(clip_norm=1e6), loss_reduction="sum")
    engine.attach()
    module(x).sum().backward()
    found = engine.clipped_sums()
    assert float(found.norms) == pytest.approx(float(found.gradients["w"].norm()), rel=1e-5)


@cases("seed", range(6))
def test_norms_from_inner_products_are_no_less_where_all_are_rounded_alike(seed: int) -> None:
    """Half of the rows are alike, and the others nearly their negatives."""
    rows, generator = 1000, torch.Generator().manual_seed(seed)
    one, right, apart = (torch.rand(2100, generator=generator) for _ in range(3))
    other = one + (apart - 0.5) * (4 * 1.3e-4 * one.square().sum() / (apart - 0.5).square().sum()).sqrt()
    left = torch.stack([one, -other] * (rows // 2))[None]
    products = OuterProducts(left, right.expand(1, rows, -1), max_entries=1, pool=MemoryPool(1, 1))
    found = products.squared_norms()
    true = (rows / 2) ** 2 * (one.double() - other.double()).square().sum() * right.double().square().sum()
    assert 1 - 2.0**-12 <= float(found) / float(true) < 1.01


@pytest.mark.parametrize("seed", range(3))
def test_norms_from_inner_products_are_found_anew_where_most_cancels_out(seed: int) -> None:
    """Down to 2**-16 of the bound, where what rounding may have lost would be a part of 2**-6."""
    rows, generator = 1000, torch.Generator().manual_seed(seed)
    one, right, apart = (torch.rand(2100, generator=generator) for _ in range(3))
    other = one + (apart - 0.5) * (4 * 2.0**-16 * one.square().sum() / (apart - 0.5).square().sum()).sqrt()
    left = torch.stack([one, -other] * (rows // 2))[None]
    products = OuterProducts(left, right.expand(1, rows, -1), max_entries=1, pool=MemoryPool(1, 1))
    found = products.squared_norms()
    true = (rows / 2) ** 2 * (one.double() - other.double()).square().sum() * right.double().square().sum()
    assert 1 - 2.0**-12 <= float(found) / float(true) < 1 + 2.0**-10


@cases("fill", [0.1, None])
@cases("entries", [1, 2047, 2048, 2049, 3_000_001])
def test_squares_of_millions_of_numbers_lose_less_than_the_slack(entries: int, fill: float | None) -> None:
    """Added in rows in float32, they lost a hundredth: a clip norm was passed by half of that."""
    values = torch.randn((2, entries), generator=torch.Generator().manual_seed(1))
    if fill is not None:
        values.fill_(fill)
    true = values.double().square().sum(1)
    assert squares(values).double() == pytest.approx(true, rel=2.0**-13)


def test_a_look_up_and_a_product_that_cancel_out_are_both_dropped() -> None:
    looked_up = GatheredRows(torch.tensor([[0], [1]]), torch.tensor([[[1.0, 0.0]], [[1.0, 0.0]]]), (2, 2))
    left, right = torch.tensor([[[-1.0, 0.0]], [[0.0, 1.0]]]), torch.tensor([[[1.0, 0.0]], [[1.0, 0.0]]])
    right[0, 0, 0] += 2.0**-20
    multiplied = OuterProducts(left, right, max_entries=0, pool=MemoryPool(0, 0))
    assert _norms_of([looked_up, multiplied]).tolist() == [0.0, 4.0]
    for use in (looked_up, multiplied):
        assert use.per_example(0, 2).tolist() == [[[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]]
