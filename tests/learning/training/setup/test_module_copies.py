"""A copy or a pickle of a module in a run is the module alone: no run, no hooks, no gradients of examples."""

from __future__ import annotations

import copy
import gc
import io
from collections.abc import Callable
from typing import Any

import pytest

from tests.run_time import run_time

if run_time(__name__):
    import torch
    from torch import nn
    from torch.optim.swa_utils import AveragedModel

    from tests.learning.training.conftest import Made, make_module

    Make = Callable[..., Made]

    class Nested(nn.Module):
        """A module with another one in it, a hook of its own, and a state of its own."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = make_module()
            self.seen: list[int] = []
            self.inner.register_forward_hook(self.note)

        def note(self, module: nn.Module, args: Any, output: Any) -> None:
            self.seen.append(len(args[0]))

        def __getstate__(self) -> dict[str, Any]:
            return vars(self) | {"seen": []}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.inner(x)
            return result


def saved_and_loaded(module: nn.Module) -> nn.Module:
    buffer = io.BytesIO()
    torch.save(module, buffer)
    buffer.seek(0)
    loaded: nn.Module = torch.load(buffer, weights_only=False)
    return loaded


def averaged(module: nn.Module) -> nn.Module:
    return AveragedModel(module).module


def reachable(start: Any) -> set[str]:
    """The types of ours that can be reached from an object, modules of the interpreter left out."""
    seen, waiting, found = set(), [vars(start)], set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, type) or type(value).__name__ in ("module", "function"):
            continue
        seen.add(id(value))
        if type(value).__module__.startswith("sfumato."):
            found.add(type(value).__name__)
        waiting += gc.get_referents(value)
    return found


@pytest.mark.parametrize("way", ["deepcopy", "save", "average"])
@pytest.mark.parametrize("when", ["made", "forward", "backward", "step"])
@pytest.mark.parametrize("self_test", [False, True])
def test_a_copy_is_of_the_module_alone(make: Make, way: str, when: str, *, self_test: bool) -> None:
    made = make(self_test=self_test)
    x, y = next(iter(made.loader))
    if when != "made":
        loss = made.loss(x, y)
    if when in ("backward", "step"):
        loss.backward()
    if when == "step":
        made.optimizer.step()
    copies: dict[str, Callable[[nn.Module], nn.Module]]
    copies = {"deepcopy": copy.deepcopy, "save": saved_and_loaded, "average": averaged}
    other = copies[way](made.module)
    assert type(other) is type(made.module)
    assert [*other.state_dict()] == [*made.module.state_dict()]
    assert all(torch.equal(a, b) for a, b in zip(other.parameters(), made.module.parameters(), strict=True))
    assert reachable(other) == set()
    assert not other._forward_hooks
    assert not other._forward_pre_hooks
    assert all(parameter.grad is None for parameter in other.parameters())
    # It trains by itself, as a module that never was in a run.
    other(torch.ones(2, 3)).sum().backward()
    assert all(parameter.grad is not None for parameter in other.parameters())
    # And the run goes on.
    if when == "made":
        loss = made.loss(x, y)
    if when in ("made", "forward"):
        loss.backward()
    if when != "step":
        made.optimizer.step()
    assert made.engine.run.released == 1
    made.epoch()


def test_the_user_s_own_hooks_and_state_are_in_the_copy(make: Make) -> None:
    module = Nested()
    made = make(module=module)
    made.epoch()
    assert module.seen
    other = copy.deepcopy(module)
    other(torch.ones(2, 3))
    assert other.seen == [2]
    assert reachable(other) == set()
    made.engine.detach()
    assert "__getstate__" not in vars(module)
    again = copy.deepcopy(module)
    again(torch.ones(5, 3))
    assert again.seen == [5]


def test_a_copy_can_be_made_private_itself(make: Make) -> None:
    made = make(self_test=True)
    made.epoch()
    best = copy.deepcopy(made.module)
    other = make(module=best, self_test=True)
    other.epoch()
    assert other.engine.run.released > 0
    assert made.engine.run.engine is not other.engine.run.engine
