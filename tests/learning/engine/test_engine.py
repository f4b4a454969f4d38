from __future__ import annotations

import pytest

from sfumato.errors import ParameterError, UnattributedParameter, UnfitModule
from tests.run_time import run_time

if run_time(__name__):
    import torch
    import torch.nn.functional as F  # noqa: N812
    from torch import Tensor, nn

    from sfumato.learning.clipping.flat import Flat
    from sfumato.learning.engine.engine import Engine, Mode
    from tests.learning.engine.reference import difference, square


CLOSE = 1e-6


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 8), nn.ReLU(), nn.Linear(8, 3))


def attached(module: nn.Module, clip_norm: float = 1.0) -> Engine:
    engine = Engine(module, Flat(clip_norm=clip_norm))
    engine.attach()
    return engine


@pytest.mark.parametrize("mode", ["auto", "book_keeping", "vmap", "microbatch"])
def test_every_mode_agrees_with_one_example_at_a_time(mode: Mode) -> None:
    error, engine = difference(mlp(), torch.randn(8, 5), mode=mode)
    assert error < CLOSE
    assert ("linear" in engine.explain()) == (mode in ("auto", "book_keeping"))


def test_forwards_with_their_own_backward_add_up_to_one_step() -> None:
    module, batch = mlp(), torch.randn(8, 5)
    engine = attached(module)
    square(module(batch)).mean().backward()
    whole = engine.clipped_sums()
    for part in batch.split([3, 1, 4]):
        square(module(part)).mean().backward()
    parts = engine.clipped_sums()
    assert parts.examples == 8
    torch.testing.assert_close(parts.norms, whole.norms)
    torch.testing.assert_close(parts.gradients, whole.gradients)
    assert not any(total.any() for total in engine.clipped_sums().gradients.values())


def test_what_an_example_that_is_not_finite_does_is_nothing() -> None:
    module, batch = mlp(), torch.randn(8, 5)
    engine = attached(module)
    square(module(batch[2:])).sum().div(6).backward()
    without = engine.clipped_sums()
    batch[0, 0], batch[1] = torch.nan, torch.inf
    square(module(batch)).mean().backward()
    found = engine.clipped_sums()
    assert found.examples == 8
    torch.testing.assert_close(found.gradients, without.gradients)


def test_an_empty_batch_adds_nothing() -> None:
    module = mlp()
    engine = attached(module)
    square(module(torch.zeros(0, 5))).mean().backward()
    found = engine.clipped_sums()
    assert found.examples == 0
    assert not any(total.any() for total in found.gradients.values())
    assert all(parameter.grad is None for parameter in module.parameters())


def test_a_use_past_the_forward_is_an_error() -> None:
    module = mlp()
    engine = attached(module)
    output = module(torch.randn(4, 5))
    (square(output).mean() + F.linear(torch.randn(4, 5), module[0].weight).sum()).backward()  # type: ignore[index]
    with pytest.raises(UnattributedParameter, match=r"0\.weight must get gradients"):
        engine.clipped_sums()
    square(module(torch.randn(4, 5))).mean().backward()
    assert engine.clipped_sums().examples == 4


def test_two_forwards_before_one_backward_are_refused() -> None:
    module = mlp()
    engine = attached(module)
    both = square(module(torch.randn(4, 5))).mean() + square(module(torch.randn(4, 5))).mean()
    with pytest.raises(UnfitModule, match="its own backward"):
        both.backward()
    assert engine.clipped_sums().examples == 0


def test_a_second_backward_is_refused() -> None:
    module = mlp()
    attached(module)
    loss = square(module(torch.randn(4, 5))).mean()
    loss.backward(retain_graph=True)
    with pytest.raises(UnfitModule, match="once for each forward"):
        loss.backward()


def test_a_backward_that_fails_leaves_nothing_behind() -> None:
    module, batch = mlp(), torch.randn(4, 5)
    engine = attached(module)
    square(module(batch)).mean().backward()
    expected = engine.clipped_sums()
    hidden: list[Tensor] = []
    handle = module[1].register_forward_hook(lambda m, i, o: hidden.append(o))  # type: ignore[index]
    loss = square(module(batch)).mean()
    handle.remove()

    def fails(_: Tensor) -> None:
        raise MemoryError

    hidden[0].register_hook(fails)
    with pytest.raises(MemoryError):
        loss.backward()
    square(module(batch)).mean().backward()
    torch.testing.assert_close(engine.clipped_sums().gradients, expected.gradients)


def test_evaluation_and_detached_modules_are_left_alone() -> None:
    module, batch = mlp(), torch.randn(4, 5)
    keys, kind = list(module.state_dict()), type(module)
    engine = attached(module)
    with torch.no_grad():
        module(batch)
    assert engine.clipped_sums().examples == 0
    assert list(module.state_dict()) == keys
    assert type(module) is kind
    engine.detach()
    square(module(batch)).mean().backward()
    assert all(parameter.grad is not None for parameter in module.parameters())


def test_parameters_that_change_are_refused() -> None:
    module = mlp()
    attached(module)
    module[0].weight = nn.Parameter(torch.randn(7, 5))  # type: ignore[index]
    with pytest.raises(UnfitModule, match="attach it again"):
        module(torch.randn(4, 5))


def test_wrong_parameters_are_refused() -> None:
    with pytest.raises(ParameterError, match="loss_reduction must be"):
        Engine(mlp(), Flat(clip_norm=1.0), loss_reduction="median")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="mode must be"):
        Engine(mlp(), Flat(clip_norm=1.0), mode="ghost")  # type: ignore[arg-type]
    with pytest.raises(UnfitModule, match="requires a gradient"):
        Engine(nn.ReLU(), Flat(clip_norm=1.0)).attach()


@pytest.mark.exhaustive  # the compiler takes seconds to load
@pytest.mark.filterwarnings("ignore")  # it traces, and warns of, what it then leaves alone
def test_a_compiled_module_trains_uncompiled() -> None:
    module, batch = mlp(), torch.randn(8, 5)
    engine = attached(module)
    square(module(batch)).mean().backward()
    expected = engine.clipped_sums()
    compiled = torch.compile(module, backend="eager")
    square(compiled(batch)).mean().backward()
    found = engine.clipped_sums()
    assert found.examples == 8
    torch.testing.assert_close(found.gradients, expected.gradients)


def test_examples_that_the_caller_knows_are_compared() -> None:
    module = nn.Linear(3, 1)
    engine = Engine(module, Flat(clip_norm=1.0), loss_reduction="sum")
    engine.attach()
    module(torch.ones(7, 3)).sum().backward()  # four people's rows in one tensor
    with pytest.raises(ParameterError, match="examples must be as many as the forward took"):
        engine.clipped_sums(4)
    assert engine.clipped_sums(0).examples == 0
    module(torch.ones(4, 3)).sum().backward()
    assert engine.clipped_sums(4).examples == 4


@pytest.mark.parametrize("mode", ["auto", "vmap"])
def test_the_norms_of_many_parameters_are_not_lost_beside_the_first(mode: Mode) -> None:
    many = 10_000

    class Many(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.own = nn.ParameterList([nn.Parameter(torch.zeros(1)) for _ in range(many)])

        def forward(self, x: Tensor) -> Tensor:
            return (x * torch.cat(list(self.own))).sum(1)

    engine = Engine(Many(), Flat(clip_norm=0.125), mode=mode)
    engine.attach()
    x = torch.full((1, many), 2.43e-4)  # each square is just below half of a float's step at 1
    x[0, 0] = 1.0
    engine.module(x).sum().backward()
    total = torch.stack(list(engine.clipped_sums().gradients.values())).double().norm()
    assert total <= 0.125 * (1 + 2.0**-16)  # it was 0.125 * (1 + 2**-11.7), beyond the slack that is paid for
