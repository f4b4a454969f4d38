from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from sfumato.errors import UnfitModule
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import torch
    import torch.nn.functional as F  # noqa: N812
    from torch import Tensor, nn

    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.engine.engine import Engine
    from tests.learning.engine.reference import difference, square
    from tests.learning.engine.test_engine import CLOSE, attached


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


if run_time(__name__):

    class Body(nn.Module):
        """A forward as a function, with parameters that it uses as it likes."""

        def __init__(self, forward: Callable[[Any, Tensor], Tensor], **own: nn.Module | Tensor) -> None:
            super().__init__()
            self._run = forward
            for name, value in own.items():
                if isinstance(value, nn.Module):
                    self.add_module(name, value)
                else:
                    self.register_parameter(name, nn.Parameter(value))

        def forward(self, batch: Tensor) -> Tensor:
            return self._run(self, batch)


def twice() -> nn.Module:
    layer = nn.Linear(5, 5)
    return nn.Sequential(layer, nn.Tanh(), layer)


def tied() -> nn.Module:
    table = nn.Embedding(10, 5, padding_idx=3)
    return Body(lambda m, x: F.linear(m.inner(table(x)), table.weight), table=table, inner=nn.Linear(5, 5))


def token() -> nn.Module:
    def forward(m: Any, x: Tensor) -> Tensor:
        first: Tensor = m.token.expand(len(x), -1, -1)
        made: Tensor = torch.cat([first, x], 1) @ m.map + m.place[:, : x.shape[1] + 1]
        return made

    return Body(forward, token=torch.randn(1, 1, 5), map=torch.randn(5, 6), place=torch.randn(1, 9, 6))


def flattened(*, minor: bool) -> nn.Module:
    def forward(m: Any, x: Tensor) -> Tensor:
        rows = (x.transpose(0, 1) if minor else x).reshape(-1, 5)
        made = torch.addmm(m.bias, rows, m.weight).tanh()
        shape = (x.shape[1], x.shape[0], 6) if minor else (*x.shape[:2], 6)
        made = made.view(shape)
        return made.transpose(0, 1) if minor else made

    return Body(forward, weight=torch.randn(5, 6), bias=torch.randn(6))


def in_place() -> nn.Module:
    def forward(m: Any, x: Tensor) -> Tensor:
        hidden = m.layer(x)
        hidden += m.shift
        hidden *= m.scale
        made: Tensor = hidden - m.shift
        return made

    return Body(forward, layer=nn.Linear(5, 4), shift=torch.randn(4), scale=torch.randn(4))


def odd_calls() -> nn.Module:
    def forward(m: Any, x: Tensor) -> Tensor:
        mixed = torch.einsum("bti,oi->bto", x, m.weight) / m.scale
        return torch.where(mixed > 0, mixed, m.scale)

    return Body(forward, weight=torch.randn(4, 5), scale=torch.rand(4) + 1)


def attention(**options: bool) -> nn.Module:
    layer = nn.MultiheadAttention(8, 2, batch_first=True, **options)
    return Body(lambda _, x: layer(x, x, x)[0], layer=layer)


if run_time(__name__):

    class Grouped(nn.Module):
        """Layers whose examples lie along the second dimension."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.LSTM(5, 4)
            self.head = nn.Linear(4, 2)

        def forward(self, batch: Tensor) -> Tensor:
            made: Tensor = self.head(self.layer(batch.transpose(0, 1))[0])
            return made.transpose(0, 1)

    MODULES: dict[str, tuple[Callable[[], nn.Module], Sequence[int], int | None]] = {
        "linear on sequences": (
            lambda: nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 7)),
            (8, 8, 5),
            None,
        ),
        "long sequences": (lambda: nn.Linear(40, 50), (4, 3, 40), None),
        "reused": (twice, (8, 5), None),
        "tied": (tied, (8, 8), 10),
        "copied for each example": (token, (8, 4, 5), None),
        "flattened": (lambda: flattened(minor=False), (8, 3, 5), None),
        "flattened, taking turns": (lambda: flattened(minor=True), (8, 8, 5), None),
        "in place": (in_place, (8, 5), None),
        "no rule": (odd_calls, (8, 3, 5), None),
        "attention": (attention, (8, 4, 8), None),
        "attention with own keys": (lambda: attention(add_bias_kv=True), (8, 4, 8), None),
        "encoder": (lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), (8, 4, 8), None),
        "lstm": (lambda: nn.LSTM(5, 4, 2, bidirectional=True, batch_first=True), (8, 3, 5), None),
        "lstm in the middle": (Grouped, (3, 8, 5), None),
        "gru": (lambda: nn.GRU(5, 4, 2, bias=False, batch_first=True), (8, 3, 5), None),
        "rnn": (lambda: nn.RNN(5, 4, nonlinearity="relu", batch_first=True), (8, 3, 5), None),
        "lstm cell": (lambda: nn.LSTMCell(5, 4), (8, 5), None),
        "weight norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(5, 4)), (8, 3, 5), None),
        "convolution, small maps": (
            lambda: nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, 1, 1)),
            (8, 16, 5, 5),
            None,
        ),
        "convolution, large maps": (
            lambda: nn.Sequential(
                nn.Conv2d(3, 4, 3, 1, 1), nn.GroupNorm(2, 4), nn.ReLU(), nn.Conv2d(4, 4, 1, 2)
            ),
            (8, 3, 16, 16),
            None,
        ),
        "convolution, strided": (
            lambda: nn.Conv2d(3, 4, (4, 3), (2, 1), (1, 2), bias=False),
            (8, 3, 9, 8),
            None,
        ),
        "convolution, many outputs": (
            lambda: nn.Sequential(nn.Conv2d(2, 16, (2, 3), (1, 2), (0, 1)), nn.Tanh(), nn.Conv2d(16, 20, 1)),
            (8, 2, 7, 9),
            None,
        ),
        "convolution, 1-d": (
            lambda: nn.Sequential(
                nn.Conv1d(4, 4, 3, padding="same", dilation=2), nn.Conv1d(4, 4, 3, groups=2)
            ),
            (8, 4, 9),
            None,
        ),
        "convolution, 3-d and back": (
            lambda: nn.Sequential(
                nn.Conv3d(3, 4, (1, 2, 3)), nn.ConvTranspose3d(4, 2, 2, 2, output_padding=1)
            ),
            (8, 3, 3, 4, 5),
            None,
        ),
        "norms": (
            lambda: nn.Sequential(nn.LayerNorm([3, 5]), nn.RMSNorm(5), nn.InstanceNorm1d(3, affine=True)),
            (8, 3, 5),
            None,
        ),
        "norms of vectors": (
            lambda: nn.Sequential(nn.LayerNorm(5), nn.GroupNorm(1, 5), nn.PReLU(5)),
            (8, 5),
            None,
        ),
        "bag": (lambda: nn.EmbeddingBag(10, 5), (8, 4), 10),
    }


@cases("name", lambda: list(MODULES))
def test_a_rule_agrees_with_one_example_at_a_time(name: str) -> None:
    torch.manual_seed(0)
    make, shape, tokens = MODULES[name]
    batch = torch.randn(shape) if tokens is None else torch.randint(tokens, tuple(shape))
    error, engine = difference(make(), batch)
    assert error < CLOSE
    assert "vmap" not in engine.explain()
    assert "microbatch" not in engine.explain()


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn", "lstm cell"])
def test_recurrent_layers_run_under_vmap(name: str) -> None:
    make, shape, _ = MODULES[name]
    error, engine = difference(make(), torch.randn(shape), mode="vmap")
    assert error < CLOSE
    assert engine.explain() == "vmap of the whole module: asked for"


@cases("name", ["long sequences", "reused", "tied", "convolution, large maps", "no rule"])
def test_with_no_memory_for_gradients_too(name: str) -> None:
    make, shape, tokens = MODULES[name]
    batch = torch.randn(shape) if tokens is None else torch.randint(tokens, tuple(shape))
    assert difference(make(), batch, memory=1)[0] < CLOSE


def test_examples_along_another_dimension() -> None:
    torch.manual_seed(1)
    module, batch = nn.GRU(5, 4), torch.randn(3, 8, 5)
    along = attached(module, 0.5)
    first = nn.GRU(5, 4, batch_first=True)
    first.load_state_dict(module.state_dict())
    across = attached(first, 0.5)
    along.detach()
    along = Engine(module, along.clipping, batch_dim=1)
    along.attach()
    module(batch)[0].square().sum().mul(1 / 8).backward()
    first(batch.transpose(0, 1))[0].square().sum().mul(1 / 8).backward()
    torch.testing.assert_close(along.clipped_sums().gradients, across.clipped_sums().gradients)


def test_frozen_parameters_are_left_out() -> None:
    module = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))
    module[0].weight.requires_grad_(False)
    error, engine = difference(module, torch.randn(8, 5))
    assert error < CLOSE
    assert "0.weight" not in engine.explain()


def test_norms_are_of_what_is_added_under_autocast() -> None:
    module = nn.Sequential(nn.Linear(32, 64), nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, 8))
    batch = torch.randn(16, 6, 32)
    engine = attached(module, 1e-3)

    def total(part: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            output = module(part)
        square(output.float()).sum().div(len(part)).backward()
        found = engine.clipped_sums().gradients.values()
        return torch.cat([gradient.flatten() for gradient in found])

    whole = total(batch)
    assert whole.dtype == torch.float32
    for i in range(4):
        without = total(torch.cat([batch[:i], batch[i + 1 :]]))
        assert (whole - without).norm() <= engine.clipping.sensitivity * (1 + 1e-3)


def test_what_no_example_owns_is_refused() -> None:
    for options in ({"max_norm": 1.0}, {"scale_grad_by_freq": True}):
        module = nn.Embedding(10, 3, **options)
        attached(module)
        with pytest.raises(UnfitModule, match="must be"):
            module(torch.randint(10, (4, 5)))


def test_a_forward_that_takes_another_way_gets_another_plan() -> None:
    def forward(m: Any, x: Tensor) -> Tensor:
        made: Tensor = m.layer(x) if x.shape[1] > 3 else m.layer(m.layer(x))
        return made

    module = Body(forward, layer=nn.Linear(5, 5))
    engine = attached(module, 0.5)
    for rows in (4, 3, 5, 2):
        batch = torch.randn(6, rows, 5)
        engine.detach()
        expected = difference(module, batch, mode="microbatch")[0]
        assert expected < CLOSE
        engine.attach()
        square(module(batch)).mean().backward()
        found = engine.clipped_sums()
        engine.detach()
        other = Engine(module, engine.clipping, mode="microbatch")
        other.attach()
        square(module(batch)).mean().backward()
        torch.testing.assert_close(found.gradients, other.clipped_sums().gradients)
        other.detach()


def test_dropout_draws_the_same_in_a_fallback() -> None:
    module = nn.Sequential(nn.Linear(5, 50), nn.Dropout(0.5), nn.Linear(50, 3))
    batch = torch.randn(4, 5)
    for options in ({"mode": "vmap"}, {"mode": "microbatch"}, {}, {"chunk": 2}):
        engine = Engine(module, Flat(clip_norm=1e3), **options)
        engine.attach()
        output = module(batch)
        output.sum().div(4).backward()
        found = engine.clipped_sums().gradients
        # the last layer's gradient is the hidden units that were kept: its forward tells the same
        hidden = found["2.weight"][0]
        head: Any = module[2]
        torch.testing.assert_close(head.weight @ hidden, (output - head.bias).sum(0))
        engine.detach()


def test_nothing_is_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert difference(nn.EmbeddingBag(10, 5), torch.randint(10, (4, 3)))[0] < CLOSE


@cases("name", ["reused", "tied", "flattened, taking turns", "lstm", "attention"])
def test_some_examples_at_a_time(name: str) -> None:
    make, shape, tokens = MODULES[name]
    batch = torch.randn(shape) if tokens is None else torch.randint(tokens, tuple(shape))
    assert difference(make(), batch, chunk=3)[0] < CLOSE


def test_inputs_get_their_gradients_in_every_mode() -> None:
    module = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2))
    batch = torch.randn(7, 5, requires_grad=True)
    (expected,) = torch.autograd.grad(square(module(batch)).mean(), batch)
    for options in ({}, {"chunk": 2}, {"mode": "vmap"}, {"mode": "microbatch"}):
        engine = Engine(module, Flat(clip_norm=1.0), **options)
        engine.attach()
        square(module(batch)).mean().backward()
        engine.detach()
        torch.testing.assert_close(batch.grad, expected)
        batch.grad = None
