"""Modules that `fully_shard` cuts up, in one process that has all the parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ParameterError
from tests.run_time import run_time

if run_time(__name__):
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.distributed.fsdp import (
        FullyShardedDataParallel,
        MixedPrecisionPolicy,
        ShardingStrategy,
        fully_shard,
    )
    from torch.distributed.tensor import Shard

    from sfumato.learning.noise.noise import ParameterSlice
    from sfumato.learning.training.distributed.shards import Shards
    from tests.learning.training.conftest import Made, make_module

    Make = Callable[..., Made]


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    if dist.is_initialized():  # by a loop that is somebody else's, in the same process before
        dist.destroy_process_group()
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_a_module_that_is_cut_up_is_trained_as_a_whole_one(make: Make, group: None, tmp_path: Path) -> None:
    plain = make(self_test=True)
    plain.epoch()
    module: Any = make_module()
    fully_shard(module[0])
    made = make(module=fully_shard(module), self_test=True, grad_sample_mode="vmap")
    made.epoch()
    weights = made.engine.export_model()
    for name, weight in plain.engine.export_model().items():
        torch.testing.assert_close(weights[name], weight)
    with torch.no_grad():
        assert module(torch.ones(2, 3)).shape == (2, 1)  # by itself whole again
    made.engine.save_checkpoint(path=tmp_path / "at.pt")
    kept = torch.load(tmp_path / "at.pt", weights_only=True)
    assert all(type(weight) is torch.Tensor for weight in kept["module_state_dict"].values())


def test_its_own_hooks_come_back(make: Make, group: None) -> None:
    module: Any = fully_shard(make_module())
    before = [list(hooks.values()) for hooks in (module._forward_pre_hooks, module._forward_hooks)]
    made = make(module=module)
    made.epoch()
    assert not any(hook in module._forward_pre_hooks.values() for hook in before[0])
    made.engine.detach()
    assert [list(hooks.values()) for hooks in (module._forward_pre_hooks, module._forward_hooks)] == before
    module(torch.ones(2, 3)).sum().backward()
    assert all(parameter.grad is not None for parameter in module.parameters())


def test_the_parts_of_a_whole_module_are_the_wholes() -> None:
    module = nn.Linear(3, 2)
    shards = Shards(module)
    shards.take()
    assert not module._forward_pre_hooks
    sums = {"weight": torch.ones(2, 3), "bias": torch.zeros(2)}
    runs, parts = shards.own(sums)
    assert runs[0] is sums["weight"]
    assert parts == [ParameterSlice(0, 6), ParameterSlice(0, 2)]


def flat() -> Any:
    return FullyShardedDataParallel(
        make_module(), device_id=torch.device("cpu"), sharding_strategy=ShardingStrategy.NO_SHARD
    )


def in_part() -> Any:
    module = make_module()
    fully_shard(module[0])  # type: ignore[index]
    return module


def with_policy() -> Any:
    return fully_shard(make_module(), mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))


def as_one() -> Any:
    module: Any = make_module()
    fully_shard([module[0], module[2]])
    return fully_shard(module)


def by_columns() -> Any:
    return fully_shard(nn.Linear(3, 4), shard_placement_fn=lambda p: Shard(p.ndim - 1))


def with_replicas() -> Any:
    mesh = dist.device_mesh.init_device_mesh("cpu", (1, 1), mesh_dim_names=("copies", "parts"))
    return fully_shard(make_module(), mesh=mesh)


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        (flat, "keep each parameter by itself"),
        (in_part, "all of its parameters sharded by fully_shard"),
        (with_policy, "no precision policy"),
        (as_one, "sharded module by module"),
        (by_columns, "sharded by rows"),
        (with_replicas, "sharded by rows"),
    ],
)
def test_what_is_cut_up_otherwise_is_refused(
    make: Make, group: None, cut: Callable[[], Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        make(module=cut())
